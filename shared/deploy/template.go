package deploy

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Template is a parsed template. Its intrinsic functions stand in their long form: !Ref x is {Ref: x}, and !If [...] is
// {Fn::If: [...]}.
type Template struct {
	root map[string]any
}

// Open parses the template in a file.
func Open(path string) (*Template, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("open template: %w", err)
	}
	return Parse(text)
}

// Parse reads a template. Aliases and merge keys are errors, since CloudFormation does not know them, and so is a key
// that stands twice.
func Parse(text []byte) (*Template, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("parse template: %w", err)
	}
	if len(document.Content) != 1 {
		return nil, errors.New("parse template: the file is empty; it needs one document")
	}
	value, err := plain(document.Content[0])
	if err != nil {
		return nil, fmt.Errorf("parse template: %w", err)
	}
	root, isMap := value.(map[string]any)
	if !isMap {
		return nil, errors.New("parse template: the document is not a mapping of sections")
	}
	return &Template{root: root}, nil
}

// Parameters returns the names of the template's parameters, sorted.
func (t *Template) Parameters() []string {
	section, _ := t.root["Parameters"].(map[string]any)
	return slices.Sorted(maps.Keys(section))
}

// plain turns a node into maps, lists and scalars, and a short intrinsic into its long form.
func plain(n *yaml.Node) (any, error) {
	var value any
	var err error
	switch n.Kind {
	case yaml.MappingNode:
		value, err = plainMap(n)
	case yaml.SequenceNode:
		value, err = plainList(n)
	case yaml.ScalarNode:
		value, err = plainScalar(n)
	default:
		err = fmt.Errorf("line %d: an alias; write the value out", n.Line)
	}
	if err != nil || !strings.HasPrefix(n.Tag, "!") || strings.HasPrefix(n.Tag, "!!") {
		return value, err
	}
	return long(strings.TrimPrefix(n.Tag, "!"), value), nil
}

func long(name string, value any) any {
	if name == "Ref" {
		return map[string]any{name: value}
	}
	if text, isText := value.(string); isText && name == "GetAtt" {
		resource, attribute, _ := strings.Cut(text, ".")
		value = []any{resource, attribute}
	}
	return map[string]any{"Fn::" + name: value}
}

func plainMap(n *yaml.Node) (any, error) {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		key := n.Content[i]
		if _, twice := m[key.Value]; twice || key.Value == "<<" {
			return nil, fmt.Errorf("line %d: key %q stands twice or merges; write it once", key.Line, key.Value)
		}
		value, err := plain(n.Content[i+1])
		if err != nil {
			return nil, err
		}
		m[key.Value] = value
	}
	return m, nil
}

func plainList(n *yaml.Node) (any, error) {
	list := make([]any, len(n.Content))
	for i, item := range n.Content {
		value, err := plain(item)
		if err != nil {
			return nil, err
		}
		list[i] = value
	}
	return list, nil
}

func plainScalar(n *yaml.Node) (any, error) {
	if strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!") {
		return n.Value, nil // the operand of an intrinsic is text
	}
	var value any
	if err := n.Decode(&value); err != nil {
		return nil, fmt.Errorf("line %d: %w", n.Line, err)
	}
	return value, nil
}
