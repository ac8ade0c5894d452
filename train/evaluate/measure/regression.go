package measure

import "math"

// Fit holds measures of numbers, in units of the numbers. R2 is the share of the variance that is explained; NaN if the
// true numbers do not vary.
type Fit struct {
	RMSE, MAE Estimate
	R2        float64
}

// Fits compares rows of predicted numbers with true ones, of width columns each: every column, and the means over
// columns, whose standard errors count an image's influence on all columns together.
func Fits(predicted, truth []float64, width int) (each []Fit, mean Fit) {
	n := len(truth) / width
	rmse, mae := make([]float64, n), make([]float64, n) // influence of an image
	for k := range width {
		squares, absolute, sum := 0., 0., 0.
		for i := range n {
			e := predicted[i*width+k] - truth[i*width+k]
			squares += e * e
			absolute += math.Abs(e)
			sum += truth[i*width+k]
		}
		count := float64(n)
		f := Fit{RMSE: Estimate{Value: math.Sqrt(squares / count)}, MAE: Estimate{Value: absolute / count}}
		total := 0.
		for i := range n {
			e := predicted[i*width+k] - truth[i*width+k]
			d := truth[i*width+k] - sum/count
			total += d * d
			ofSquare, ofAbsolute := 0., (math.Abs(e)-f.MAE.Value)/count
			if f.RMSE.Value > 0 {
				ofSquare = (e*e - squares/count) / (2 * f.RMSE.Value * count)
			}
			f.RMSE.Error += ofSquare * ofSquare
			f.MAE.Error += ofAbsolute * ofAbsolute
			rmse[i] += ofSquare / float64(width)
			mae[i] += ofAbsolute / float64(width)
		}
		f.RMSE.Error, f.MAE.Error = math.Sqrt(f.RMSE.Error), math.Sqrt(f.MAE.Error)
		if f.R2 = math.NaN(); total > 0 {
			f.R2 = 1 - squares/total
		}
		each = append(each, f)
		mean.RMSE.Value += f.RMSE.Value / float64(width)
		mean.MAE.Value += f.MAE.Value / float64(width)
		mean.R2 += f.R2 / float64(width)
	}
	for i := range n {
		mean.RMSE.Error += rmse[i] * rmse[i]
		mean.MAE.Error += mae[i] * mae[i]
	}
	mean.RMSE.Error, mean.MAE.Error = math.Sqrt(mean.RMSE.Error), math.Sqrt(mean.MAE.Error)
	return each, mean
}
