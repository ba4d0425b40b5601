package rules

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"
)

// functions are those that a match may call. Each gives the same answer for the same document at any time and place, and
// none makes more of its input than is in it: hence no map, reduce, replace, repeat or join, nor keys, whose order
// changes.
var functions = []string{
	"abs", "all", "any", "ceil", "count", "filter", "find", "findIndex", "findLast", "findLastIndex", "first", "float",
	"floor",
	"get", "hasPrefix", "hasSuffix", "indexOf", "int", "last", "lastIndexOf", "len", "lower", "max", "min", "none", "one",
	"round", "split", "string", "sum", "trim", "trimPrefix", "trimSuffix", "type", "upper",
}

// wholeDocument is expr's name for all variables together.
const wholeDocument = "$env"

// match is a compiled expression.
type match struct {
	program *vm.Program
	reads   []variable
	loops   bool // some part of it runs once for each element of a list
	line    int
}

// variable is a top member of the document that a match reads.
type variable struct {
	name string
	slot int
}

// compileMatch compiles an expression. slot gives the slot of a top member.
func compileMatch(text string, slot func(name string) int) (*match, error) {
	if len(text) > maxMatch {
		return nil, fmt.Errorf("an expression has at most %d bytes; write a shorter one", maxMatch)
	}
	tree, err := parser.Parse(text)
	if err != nil {
		return nil, explainCompile(err)
	}
	reads := &reading{}
	ast.Walk(&tree.Node, reads)
	names, err := reads.members()
	if err != nil {
		return nil, err
	}
	known := types.Map{} // declared, so that a member may have the name of a function
	for _, name := range names {
		known[name] = types.Any
	}
	bounds := &bounding{}
	program, err := expr.Compile(text, expr.Env(known), expr.AsBool(), expr.MaxNodes(maxNodes), expr.Patch(bounds))
	switch {
	case bounds.err != nil:
		return nil, bounds.err
	case err != nil:
		return nil, explainCompile(err)
	case calculates(tree.Node):
		return nil, errors.New("it gives a number or text, not true or false; compare it with something")
	case len(names) == 0:
		return nil, errors.New("it reads no member, so its answer is always the same; " +
			"leave match out to count every record")
	}
	out := &match{program: program, loops: bounds.loops}
	for _, name := range names {
		out.reads = append(out.reads, variable{name: name, slot: slot(name)})
	}
	return out, nil
}

// reading collects the variables of an expression.
type reading struct {
	names   []string
	whole   int // mentions of the whole document
	indexed int // those of them that name one member of it
}

// Visit is called for each node after the nodes below it.
func (r *reading) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		if n.Value == wholeDocument {
			r.whole++
		} else {
			r.names = append(r.names, n.Value)
		}
	case *ast.MemberNode:
		if of, ok := n.Node.(*ast.IdentifierNode); ok && of.Value == wholeDocument {
			if name, ok := n.Property.(*ast.StringNode); ok {
				r.indexed++
				r.names = append(r.names, name.Value)
			}
		}
	}
}

func (r *reading) members() ([]string, error) {
	if r.whole != r.indexed {
		return nil, fmt.Errorf(`%s alone is the whole document; read one member, as in %s["detail-type"]`, wholeDocument,
			wholeDocument)
	}
	slices.Sort(r.names)
	return slices.Compact(r.names), nil
}

// calculates reports whether an expression's outermost operator can never give true or false. The compiler, which does
// not know what members hold, lets it pass.
func calculates(root ast.Node) bool {
	binary, ok := root.(*ast.BinaryNode)
	return ok && slices.Contains([]string{"+", "-", "*", "/", "%", "**", "^"}, binary.Operator)
}

func noFunction(name string) error {
	if slices.Contains(functions, name) { // it lost its meaning to a member of that name
		return fmt.Errorf("%s is a member of the document here, not a function; write ::%s(...) for the function", name, name)
	}
	return fmt.Errorf("%s is not a function that a match may call; call one of %s", name, strings.Join(functions, ", "))
}

// bounding refuses what could take long, much memory, or give another answer the next time.
type bounding struct {
	err   error
	loops bool
}

// Visit is called for each node after the nodes below it.
func (b *bounding) Visit(node *ast.Node) {
	var err error
	switch n := (*node).(type) {
	case *ast.CallNode:
		err = errors.New("values have no functions to call; call one of " + strings.Join(functions, ", "))
		if callee, ok := n.Callee.(*ast.IdentifierNode); ok {
			err = noFunction(callee.Value)
		}
	case *ast.BuiltinNode:
		if !slices.Contains(functions, n.Name) {
			err = noFunction(n.Name)
		}
	case *ast.PredicateNode:
		b.loops = true
		inner := &nesting{}
		ast.Walk(&n.Node, inner)
		err = inner.err
	case *ast.BinaryNode:
		if _, constant := n.Right.(*ast.StringNode); n.Operator == "matches" && !constant {
			err = errors.New("a pattern of matches cannot come from the document; write it into the expression")
		}
	case *ast.VariableDeclaratorNode, *ast.SequenceNode:
		err = errors.New("a match is one expression without let; write out what let would name")
	}
	if b.err == nil {
		b.err = err
	}
}

// nesting refuses, in what runs once for each element of a list, what is slow over more than the element. Comparing the
// element with members of the document remains.
type nesting struct{ err error }

// Visit is called for each node after the nodes below it.
func (n *nesting) Visit(node *ast.Node) {
	if n.err != nil {
		return
	}
	reads := &reading{}
	switch inner := (*node).(type) {
	case *ast.PredicateNode:
		n.err = errors.New("a function over a list cannot stand inside another; compare with one list")
	case *ast.BinaryNode:
		if inner.Operator == "matches" || inner.Operator == "+" {
			ast.Walk(&inner.Left, reads)
			ast.Walk(&inner.Right, reads)
		}
	case *ast.BuiltinNode:
		for i := range inner.Arguments {
			ast.Walk(&inner.Arguments[i], reads)
		}
	}
	if len(reads.names)+reads.whole > 0 {
		n.err = errors.New("in a function over a list, only its elements can be added, matched or given to a function; " +
			"compare the element, #, with members of the document")
	}
}

func explainCompile(err error) error {
	if at, ok := errors.AsType[*file.Error](err); ok {
		return fmt.Errorf("%s, at %d:%d of the expression", at.Message, at.Line, at.Column+1)
	}
	return err
}

// mismatch is how the expression machine reports an operator that has no meaning for its operands. All other errors of
// it may quote the document.
var mismatch = regexp.MustCompile(`^invalid operation: (\S+|map\[string\]interface \{\}|\[\]interface \{\}) (\S+) ` +
	`(\S+|map\[string\]interface \{\}|\[\]interface \{\})$`)

var kinds = map[string]string{
	"<nil>": "an absent or null value", "bool": "true or false", "int": "a whole number", "float64": "a decimal number",
	"string": "text", "map[string]interface {}": "an object", "[]interface {}": "a list",
}

// explainRun says why an expression had no answer for a document, without quoting it.
func explainRun(err error) string {
	const remedy = `; send what the expression expects, or guard it, as in price != nil && price > 0`
	if at, ok := errors.AsType[*file.Error](err); ok {
		if m := mismatch.FindStringSubmatch(at.Message); m != nil && kinds[m[1]] != "" && kinds[m[3]] != "" {
			return fmt.Sprintf("has no answer: %s between %s and %s, at %d:%d of the expression%s",
				m[2], kinds[m[1]], kinds[m[3]], at.Line, at.Column+1, remedy)
		}
		return fmt.Sprintf("has no answer for these values, at %d:%d of the expression%s", at.Line, at.Column+1, remedy)
	}
	return "has no answer for these values" + remedy
}
