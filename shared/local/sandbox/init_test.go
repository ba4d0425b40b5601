package sandbox

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestInit_FailedOnceIsTriedAgainInTheSameEnvironment(t *testing.T) {
	for _, how := range []string{"exit-once", "hang-once"} {
		r := start(t, func(c *Config) {
			c.Env = map[string]string{"INIT": how}
			if how == "hang-once" {
				c.InitTimeout = time.Second
			}
		})
		if s := r.see(order{}); !slices.Contains(s.Files, "started-before") {
			t.Errorf("%s: the second init does not see the first one's files: %q", how, s.Files)
		}
	}
}

func TestInit_FailedTwiceFailsTheInvocation(t *testing.T) {
	for _, c := range []struct{ how, kind, message string }{
		{"exit", TypeExit, "exit status 7"},
		{"hang", TypeInitTimeout, "asked for no event"},
		{"report", "Config.Missing", "no table"},
	} {
		r := start(t, func(f *Config) {
			f.Env = map[string]string{"INIT": c.how}
			if c.how == "hang" {
				f.InitTimeout, f.Timeout = 200*time.Millisecond, 200*time.Millisecond
			}
		})
		if failure := r.fail(order{}, c.kind); !strings.Contains(failure.Message, c.message) {
			t.Errorf("%s: message %q, want %q in it", c.how, failure.Message, c.message)
		}
	}
}

func TestReport_TellsColdFromWarm(t *testing.T) {
	r := start(t, nil)
	r.see(order{})
	r.see(order{})
	r.fail(order{Do: "fail", Text: "no"}, "errorString")
	if len(r.reports) != 3 {
		t.Fatalf("%d reports, want 3", len(r.reports))
	}
	cold, warm, failed := r.reports[0], r.reports[1], r.reports[2]
	if cold.Init <= 0 || warm.Init != 0 || cold.Duration <= 0 || cold.RequestID == warm.RequestID {
		t.Errorf("cold %+v, warm %+v", cold, warm)
	}
	if failed.Err == nil || warm.Err != nil {
		t.Errorf("errors: failed %v, warm %v", failed.Err, warm.Err)
	}
}

func TestOutput_ComesLineByLineWithItsStream(t *testing.T) {
	r := start(t, nil)
	long := strings.Repeat("x", MaxLine+10)
	r.fail(order{Do: "print", Text: "one\ntwo\n" + long}, TypeExit)
	want := "stdout: one\nstdout: two\nstdout: " + long[:MaxLine] + "\nstdout: " + long[MaxLine:] + "\n"
	var out strings.Builder
	for line := range strings.Lines(r.logged()) {
		if strings.HasPrefix(line, "stdout") {
			out.WriteString(line)
		}
	}
	if out.String() != want {
		t.Errorf("stdout of %d bytes, want %d", out.Len(), len(want))
	}
	if !strings.Contains(r.logged(), "stderr: no newline\n") {
		t.Error("the last line, without a newline, is missing")
	}
}

func TestConfig_AllFaultsAtOnce(t *testing.T) {
	_, err := New(Config{
		Timeout: 901 * time.Second,
		Env:     map[string]string{"AWS_REGION": "x", "BIG": strings.Repeat("x", 4<<10)},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"no name", "no bootstrap", "AWS_REGION", "4110 bytes", "outside Lambda's range"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	fits := Config{Name: "f", Bootstrap: "b", Timeout: 900 * time.Second}
	fits.Env = map[string]string{"BIG": strings.Repeat("x", 4<<10-3)}
	if _, err := New(fits); err != nil {
		t.Errorf("at the limits: %v", err)
	}
}
