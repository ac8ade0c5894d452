package average

import "time"

// since adds the seconds since t to a total.
func since(t time.Time, seconds *float64) { *seconds += time.Since(t).Seconds() }
