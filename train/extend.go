package train

import "fmt"

// extend notes that a resumed run has another number of epochs than it had, and writes it down.
func (r *Run) extend(before int) error {
	c := &r.Config
	r.note("%d epochs in place of %d: the rate is that of a run of %d epochs from here on, %v", c.Epochs, before, c.Epochs, c.Schedule)
	if err := r.Save(); err != nil { // a checkpoint has the config of its run
		return err
	}
	return r.first(func() error {
		if err := c.Write(c.Out); err != nil {
			return fmt.Errorf("the run's folder %s: %w", c.Out, err)
		}
		return nil
	})
}
