// Package lower is the frame in which a device finds kernels for the ops of a program.
//
// A [Pattern] is one way to run some steps as one kernel. It finds the steps in the flow of values ([Flow]) and says
// how the device runs them (a [Match]). A [Table] holds all patterns of a device and implements device.Grouper for
// it: Group proposes the groups that the patterns find in a program; Describe finds the pattern again in the group
// and makes its [Lowering], which the plan carries; Bind returns that with the storage. So each pattern defines its
// steps once.
//
// K is the type of a device's bound lowering, such as a function from storage to kernel calls. A device with a kernel
// for ReLU, and one for an addition with a ReLU behind it:
//
//	type kernel func(region []device.Region) func() // by value of the group
//
//	func relu(s lower.Step, _ op.ReLU) (*lower.Lowering[kernel], error) {
//		x, y := s.In[0], s.Out
//		return &lower.Lowering[kernel]{
//			Results: []lower.Result{{Value: y, Bytes: s.OutType().Bytes(), Over: []int{x}}},
//			Kernel:  func(region []device.Region) func() { return … },
//		}, nil
//	}
//
//	func addReLU(f *lower.Flow, first int) []lower.Match[kernel] {
//		add := f.Step(first)
//		next, ok := lower.Next[op.ReLU](f, first)
//		if !lower.Is[op.Add](add) || !ok {
//			return nil
//		}
//		return []lower.Match[kernel]{{
//			Steps: []int{first, next},
//			Lower: func() (*lower.Lowering[kernel], error) {
//				if add.InValue(0).Layout != add.InValue(1).Layout {
//					return nil, lower.Reason("operands have different layouts")
//				}
//				…
//			},
//		}}
//	}
//
//	var table = lower.Table[kernel]{Device: "mine", Patterns: []lower.Pattern[kernel]{addReLU, lower.Alone(relu)}}
//
//	func (d *Device) Group(p *device.Program) [][]int                   { return table.Group(p) }
//	func (d *Device) Describe(g *device.Group) (*device.Plan, error)    { return table.Describe(g) }
//	func (d *Device) Bind(g *device.Group, p *device.Plan, a device.Args) (device.Kernel, error) {
//		b, err := table.Bind(g, p, a)
//		if err != nil {
//			return nil, err
//		}
//		run := b.Kernel(b.Regions)
//		return func() error { run(); return nil }, nil
//	}
package lower
