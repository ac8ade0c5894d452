package train

// extend notes that a resumed run has another number of epochs than it had, and writes it down: a checkpoint has the config of its run.
func (r *Run) extend(before int) error {
	c := &r.Resolved
	r.Resolved.note("%d epochs in place of %d: the rate is that of a run of %d epochs from here on, %v", c.Epochs, before, c.Epochs, c.Schedule)
	return r.Save()
}
