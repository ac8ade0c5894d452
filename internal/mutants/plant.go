package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// A fault is one change of a source.
type fault struct {
	id         int
	file, name string // of the file, relative to the module, and of the function
	kind, text string
	line       int
	key        string // its name in survivors.txt, without the line number
}

// An edit replaces size bytes at an offset.
type edit struct {
	at, size int
	text     string
}

// A planter rewrites one file.
type planter struct {
	fset   *token.FileSet
	info   *types.Info
	source []byte
	path   string
	name   string
	faults *[]fault
	before []edit
	after  []edit
}

func (p *planter) offset(at token.Pos) int { return p.fset.Position(at).Offset }

func (p *planter) text(n ast.Node) string {
	return strings.Join(strings.Fields(string(p.source[p.offset(n.Pos()):p.offset(n.End())])), " ")
}

// add notes a fault and returns its number.
func (p *planter) add(kind string, n ast.Node) int {
	text := p.text(n)
	if runes := []rune(text); len(runes) > 90 {
		text = string(runes[:90]) + "…"
	}
	id := len(*p.faults) + 1
	*p.faults = append(*p.faults, fault{id: id, file: p.path, name: p.name, kind: kind, text: text,
		line: p.fset.Position(n.Pos()).Line})
	return id
}

// wrap puts text around a node, and replaces its operator if there is one.
func (p *planter) wrap(n ast.Node, before, after string) {
	p.before = append(p.before, edit{p.offset(n.Pos()), 0, before})
	p.after = append(p.after, edit{p.offset(n.End()), 0, after})
}

func (p *planter) replace(at token.Pos, old, text string) {
	p.before = append(p.before, edit{p.offset(at), len(old), text})
}

// rewritten applies the edits: at one place the outer beginning and the inner end come first.
func (p *planter) rewritten() []byte {
	slices.Reverse(p.after)
	edits := append(p.after, p.before...)
	slices.SortStableFunc(edits, func(a, b edit) int { return a.at - b.at })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, p.source[at:e.at]...), e.text...)
		at = e.at + e.size
	}
	return append(out, p.source[at:]...)
}

// basic returns the name of a numeric basic type, "" for others.
func basic(t types.Type) string {
	b, ok := t.(*types.Basic)
	if !ok || b.Info()&types.IsNumeric == 0 || b.Info()&(types.IsUntyped|types.IsComplex) != 0 {
		return ""
	}
	return b.Name()
}

func (p *planter) numeric(e ast.Expr) bool { return p.of(e, types.IsInteger|types.IsFloat) }

func (p *planter) integer(e ast.Expr) bool { return p.of(e, types.IsInteger) }

// of tells whether an expression has a typed basic type of a class.
func (p *planter) of(e ast.Expr, class types.BasicInfo) bool {
	t := p.info.TypeOf(e)
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&class != 0 && b.Info()&types.IsUntyped == 0
}

func (p *planter) constant(e ast.Expr) bool { return p.info.Types[e].Value != nil }

var swapped = map[token.Token]string{token.ADD: "Add", token.SUB: "Sub", token.MUL: "Mul", token.QUO: "Quo",
	token.ADD_ASSIGN: "Neg", token.SUB_ASSIGN: "Neg", token.MUL_ASSIGN: "Inv", token.QUO_ASSIGN: "Inv"}

var ordered = map[token.Token]string{token.LSS: "Less", token.LEQ: "LessEqual", token.GTR: "More",
	token.GEQ: "MoreEqual"}

var functions = []string{"math.Sqrt", "math.Abs", "math.Log", "math.Exp", "math.Log1p", "math.Expm1"}

// visit plants the faults of a node and tells whether to look into it.
func (p *planter) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case *ast.ArrayType, *ast.StructType, *ast.FuncType, *ast.CaseClause:
		if c, ok := n.(*ast.CaseClause); ok {
			for _, e := range c.List {
				if !p.constant(e) {
					p.walk(e)
				}
			}
			for _, s := range c.Body {
				p.statement(s)
				p.walk(s)
			}
		}
		return false
	case *ast.KeyValueExpr:
		p.walk(n.Value)
		return false
	case *ast.ForStmt: // its last clause takes no if
		for _, part := range []ast.Node{n.Init, n.Cond, n.Body} {
			if part != nil && !isNil(part) {
				p.walk(part)
			}
		}
		return false
	case *ast.IfStmt:
		switch n.Cond.(type) {
		case *ast.BinaryExpr, *ast.UnaryExpr:
		default:
			p.wrap(n.Cond, "((", fmt.Sprintf(") != fault_On(%d))", p.add("negation", n.Cond)))
		}
	case *ast.BlockStmt:
		for _, s := range n.List {
			p.statement(s)
		}
	case *ast.AssignStmt:
		if name := swapped[n.Tok]; name != "" && p.numeric(n.Lhs[0]) && basic(p.info.TypeOf(n.Lhs[0])) != "" {
			p.wrap(n.Rhs[0], fmt.Sprintf("fault_%s[%s](%d, ", name, basic(p.info.TypeOf(n.Lhs[0])),
				p.add("operator", n)), ")")
		}
	}
	e, ok := n.(ast.Expr)
	if !ok {
		return true
	}
	if tv := p.info.Types[e]; tv.Value != nil || tv.IsType() {
		if t := basic(tv.Type); t != "" && tv.Value != nil {
			p.wrap(e, fmt.Sprintf("fault_Constant[%s](%d, ", t, p.add("more", e)), ")")
			p.add("less", e)
		}
		return false
	}
	switch n := n.(type) {
	case *ast.CallExpr:
		return p.call(n)
	case *ast.UnaryExpr:
		if _, ok := ast.Unparen(n.X).(*ast.BinaryExpr); n.Op == token.NOT && !ok {
			p.wrap(n, "(", fmt.Sprintf(" != fault_On(%d))", p.add("negation", n)))
		}
	case *ast.BinaryExpr:
		p.binary(n)
	}
	return true
}

func (p *planter) binary(n *ast.BinaryExpr) {
	switch name := ordered[n.Op]; {
	case name != "" && p.integer(n.X):
		p.wrap(n, fmt.Sprintf("fault_%s(%d, ", name, p.add("boundary", n)), ")")
		p.add("negation", n)
		p.replace(n.OpPos, n.Op.String(), ",")
	case n.Op == token.EQL || n.Op == token.NEQ || name != "":
		p.wrap(n, "((", fmt.Sprintf(") != fault_On(%d))", p.add("negation", n)))
	case n.Op == token.LAND || n.Op == token.LOR:
		// a || b is !(!a && !b), so that one text serves both operators.
		id := p.add("logic", n)
		p.wrap(n, "((", fmt.Sprintf(") != fault_On(%d))", id))
		for _, side := range []ast.Expr{n.X, n.Y} {
			p.wrap(side, "((", fmt.Sprintf(") != fault_On(%d))", id))
		}
	case swapped[n.Op] != "" && p.numeric(n):
		p.wrap(n, fmt.Sprintf("fault_%s(%d, ", swapped[n.Op], p.add("operator", n)), ")")
		p.replace(n.OpPos, n.Op.String(), ",")
	}
}

// call plants the faults of calls. Texts of errors are left alone.
func (p *planter) call(n *ast.CallExpr) bool {
	name := p.text(n.Fun)
	if tv := p.info.Types[n.Fun]; tv.IsType() {
		p.walk(n.Args[0])
		return false
	}
	switch {
	case name == "fmt.Errorf" || name == "errors.New" || name == "panic":
		return false
	case name == "make":
		if len(n.Args) > 1 { // capacities are speed
			p.walk(n.Args[1])
		}
		return false
	case name == "new" || name == "unsafe.Sizeof":
		return false
	case (name == "min" || name == "max") && len(n.Args) > 1 && p.numeric(n):
		id := p.add("function", n)
		p.replace(n.Fun.Pos(), name, "fault_"+name)
		p.replace(n.Lparen, "(", fmt.Sprintf("(%d, ", id))
		for _, a := range n.Args {
			p.walk(a)
		}
		return false
	case slices.Contains(functions, name) && len(n.Args) == 1:
		id := p.add("function", n)
		p.replace(n.Lparen, "(", ", ")
		p.before = append(p.before, edit{p.offset(n.Fun.Pos()), 0, fmt.Sprintf("fault_Call(%d, ", id)})
		p.walk(n.Args[0])
		return false
	}
	return true
}

// statement plants the omission of a statement in a block.
func (p *planter) statement(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return
		}
		for _, l := range s.Lhs { // omitted, a variable may be unused: not a fault of results
			if id, ok := l.(*ast.Ident); ok && id.Name == "_" {
				return
			}
		}
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok || p.text(call.Fun) == "panic" {
			return
		}
	case *ast.IncDecStmt:
	case *ast.BranchStmt:
		if s.Label != nil || s.Tok != token.BREAK && s.Tok != token.CONTINUE {
			return
		}
	default:
		return
	}
	p.wrap(s, "if !fault_On("+fmt.Sprint(p.add("omission", s))+") { ", " }")
}

func isNil(n ast.Node) bool {
	switch n := n.(type) {
	case ast.Expr:
		return n == nil
	case *ast.BlockStmt:
		return n == nil
	}
	return false
}

func (p *planter) walk(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool { return n != nil && p.visit(n) })
}

// plant rewrites the functions of a file.
func plant(fset *token.FileSet, info *types.Info, f *ast.File, source []byte, path string, faults *[]fault) []byte {
	p := &planter{fset: fset, info: info, source: source, path: filepath.ToSlash(path), faults: faults}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body == nil {
				continue
			}
			p.name = d.Name.Name
			if d.Recv != nil {
				t := d.Recv.List[0].Type
				if star, ok := t.(*ast.StarExpr); ok {
					t = star.X
				}
				if index, ok := t.(*ast.IndexExpr); ok {
					t = index.X
				}
				p.name = p.text(t) + "." + p.name
			}
			p.walk(d.Body)
		case *ast.GenDecl:
			p.name = "var"
			if d.Tok == token.VAR {
				p.walk(d)
			}
		}
	}
	return p.rewritten()
}
