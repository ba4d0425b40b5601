package local

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"abacus/shared/deploy"
	"abacus/shared/local/mapping"
	"abacus/shared/local/sandbox"
	"abacus/shared/local/wire"
)

// shippedRules is the rule file that the template's layer holds, from the module's root.
const shippedRules = "functions/counters.yaml"

// Options says what to run. Zero values mean the default that the field names.
type Options struct {
	Root       string         // folder of the module; default: found from the working directory upward
	Parameters map[string]any // of the template, int or string; default: the template's own
	Rules      string         // rule file; default functions/counters.yaml under Root
	Build      string         // where executables are built; default .build under Root
	Address    string         // of the listener; default 127.0.0.1:0, any free port

	// FunctionTimeout is how long an invocation may take, in place of the template's.
	FunctionTimeout time.Duration

	Pace   mapping.Pace         // of the mappings
	Log    func(sandbox.Line)   // gets every line that a function writes, from many goroutines
	Report func(sandbox.Report) // told of every ended invocation, from many goroutines

	// Faults that the suite is to survive. Functions may be called by many goroutines; nil: all is healthy.
	FunctionFault func(function string, call sandbox.Call) sandbox.Fault
	TableFault    func(wire.Call) wire.Fault
	StreamFault   func(wire.Call) wire.Fault
	QueueFault    func(wire.Call) wire.Fault
}

func (o *Options) complete() error {
	if o.Root == "" {
		root, err := FindRoot(".")
		if err != nil {
			return err
		}
		o.Root = root
	}
	o.Rules = cmp.Or(o.Rules, filepath.Join(o.Root, filepath.FromSlash(shippedRules)))
	o.Build = cmp.Or(o.Build, filepath.Join(o.Root, ".build"))
	o.Address = cmp.Or(o.Address, "127.0.0.1:0")
	for _, path := range []*string{&o.Root, &o.Rules, &o.Build} { // processes have working directories of their own
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	if !exists(o.Rules) {
		return fmt.Errorf("no rule file at %s; say where it is", o.Rules)
	}
	return nil
}

func (o *Options) plan() (*plan, error) {
	template, err := deploy.Open(filepath.Join(o.Root, "template.yaml"))
	if err != nil {
		return nil, err
	}
	for name := range o.Parameters {
		if !slices.Contains(template.Parameters(), name) {
			return nil, fmt.Errorf("template.yaml has no parameter %s", name)
		}
	}
	view := template.View(func(name string) any { return o.Parameters[name] })
	if !view.Allowed() {
		return nil, errors.Join(errors.New("the rules of template.yaml do not allow these parameters"), view.Err())
	}
	return newPlan(view)
}
