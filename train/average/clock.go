package average

import "time"

// since adds the time since t to a number of seconds.
func since(t time.Time, seconds *float64) { *seconds += time.Since(t).Seconds() }
