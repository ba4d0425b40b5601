package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config describes one function. Zero values mean the default that the field names.
type Config struct {
	Name      string            // required
	Bootstrap string            // required: the executable; its folder is LAMBDA_TASK_ROOT and the working directory
	Handler   string            // default "bootstrap"
	Env       map[string]string // the function's own variables; at most 4 KB, none of the reserved ones

	Timeout     time.Duration // of an invocation; default 3 s
	InitTimeout time.Duration // of the first init of an environment; default 10 s
	Grace       time.Duration // between SIGTERM and SIGKILL at Close; default 500 ms
	Concurrency int           // most environments, thus most invocations at once; default 10
	MemoryMB    int           // told to the function, not enforced; default 128

	Region  string // default "us-east-1"
	Account string // default "000000000000"
	TempDir string // where environments keep their temporary directories; default os.TempDir()

	Log    func(Line)       // gets every line of output, from many goroutines; nil drops them
	Report func(Report)     // told of every ended invocation, from many goroutines
	Fault  func(Call) Fault // decides the fate of each invocation; nil: all are healthy
}

// reserved names cannot be set by a function
// (https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime).
var reserved = []string{
	"_HANDLER", "_X_AMZN_TRACE_ID", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_EXECUTION_ENV", "AWS_LAMBDA_FUNCTION_NAME",
	"AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_LAMBDA_FUNCTION_VERSION", "AWS_LAMBDA_INITIALIZATION_TYPE",
	"AWS_LAMBDA_LOG_GROUP_NAME", "AWS_LAMBDA_LOG_STREAM_NAME", "AWS_ACCESS_KEY", "AWS_ACCESS_KEY_ID",
	"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_LAMBDA_RUNTIME_API", "LAMBDA_TASK_ROOT", "LAMBDA_RUNTIME_DIR",
}

// maxEnv is Lambda's limit on a function's own variables, names and values together, in bytes.
const maxEnv = 4 << 10

// complete fills in defaults and reports everything that is wrong at once.
func (c *Config) complete() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if c.Name == "" {
		fault("function has no name; set Config.Name")
	}
	if path, err := filepath.Abs(c.Bootstrap); err != nil || c.Bootstrap == "" {
		fault("function %s has no bootstrap; set Config.Bootstrap to its executable", c.Name)
	} else {
		c.Bootstrap = path
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		size += len(name) + len(c.Env[name])
		if slices.Contains(reserved, name) {
			fault("function %s sets %s, which Lambda reserves; take it out", c.Name, name)
		}
	}
	if size > maxEnv {
		fault("function %s has %d bytes of environment, and Lambda allows %d; move some of it into a file",
			c.Name, size, maxEnv)
	}
	if c.Timeout < 0 || c.Timeout > 900*time.Second || c.InitTimeout < 0 || c.Grace < 0 || c.Concurrency < 0 {
		fault("function %s has a limit outside Lambda's range (timeout up to 900 s, nothing negative)", c.Name)
	}
	setDefault(&c.Handler, "bootstrap")
	setDefault(&c.Timeout, 3*time.Second)
	setDefault(&c.InitTimeout, 10*time.Second)
	setDefault(&c.Grace, 500*time.Millisecond)
	setDefault(&c.Concurrency, 10)
	setDefault(&c.MemoryMB, 128)
	setDefault(&c.Region, "us-east-1")
	setDefault(&c.Account, "000000000000")
	setDefault(&c.TempDir, os.TempDir())
	return errors.Join(faults...)
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// ARN returns the function's name in the form that the Invoked-Function-Arn header carries.
func (c *Config) arn() string {
	return "arn:aws:lambda:" + c.Region + ":" + c.Account + ":function:" + c.Name
}

// environ returns the whole environment of a process whose Runtime API is at address and whose scratch space is temp.
// A custom runtime gets neither AWS_EXECUTION_ENV nor _X_AMZN_TRACE_ID.
func (c *Config) environ(address, temp string, id int) []string {
	env := map[string]string{
		"LANG": "en_US.UTF-8", "TZ": ":UTC", "PATH": "/usr/local/bin:/usr/bin/:/bin:/opt/bin",
	}
	maps.Copy(env, c.Env)
	maps.Copy(env, map[string]string{
		"_HANDLER":                        c.Handler,
		"AWS_ACCESS_KEY_ID":               "local",
		"AWS_SECRET_ACCESS_KEY":           "local",
		"AWS_SESSION_TOKEN":               "local",
		"AWS_REGION":                      c.Region,
		"AWS_DEFAULT_REGION":              c.Region,
		"AWS_LAMBDA_FUNCTION_NAME":        c.Name,
		"AWS_LAMBDA_FUNCTION_VERSION":     "$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": strconv.Itoa(c.MemoryMB),
		"AWS_LAMBDA_INITIALIZATION_TYPE":  "on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME":       "/aws/lambda/" + c.Name,
		"AWS_LAMBDA_LOG_STREAM_NAME":      fmt.Sprintf("local/[$LATEST]%d", id),
		"AWS_LAMBDA_RUNTIME_API":          address,
		"LAMBDA_TASK_ROOT":                filepath.Dir(c.Bootstrap),
		"LAMBDA_RUNTIME_DIR":              "/var/runtime",
		"TMPDIR":                          temp,
	})
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+strings.ReplaceAll(env[name], "\x00", ""))
	}
	return list
}
