package mapping_test

import (
	"flag"
	"os"
	"testing"
)

// A schedule of trouble takes about 100 ms of a machine: 20 of them a run, unless -rapid.checks asks for more.
func TestMain(m *testing.M) {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		_ = flag.Set("rapid.checks", "20")
	}
	os.Exit(m.Run())
}
