package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

// TestMain lets the test binary be the bootstrap too: a process that finds a Runtime API in its environment is one.
func TestMain(m *testing.M) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") != "" {
		bootstrap()
		return
	}
	os.Exit(m.Run())
}

// order is the event that the test bootstrap understands.
type order struct {
	Do   string
	Text string
	N    int
}

// seen is what it answers.
type seen struct {
	PID      int
	Request  string
	ARN      string
	Trace    string
	Left     time.Duration // until the deadline
	Env      []string
	Dir      string
	Files    []string
	Followed int // pid of a child
}

func bootstrap() {
	temp := os.Getenv("TMPDIR")
	switch initOrder := os.Getenv("INIT"); initOrder {
	case "":
	case "exit":
		os.Exit(7)
	case "hang":
		select {}
	case "exit-once", "hang-once":
		marker := filepath.Join(temp, "started-before")
		if _, err := os.Stat(marker); err != nil {
			_ = os.WriteFile(marker, nil, 0o600)
			if initOrder == "exit-once" {
				os.Exit(7)
			}
			select {}
		}
	case "report":
		post("runtime/init/error", `{"errorMessage":"no table","errorType":"Config.Missing"}`)
		os.Exit(1)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "polite":
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		go func() {
			<-c
			fmt.Println("asked to leave")
			os.Exit(0)
		}()
	}
	lambda.StartWithOptions(handle)
}

func post(path, body string) {
	url := "http://" + os.Getenv("AWS_LAMBDA_RUNTIME_API") + "/2018-06-01/" + path
	if resp, err := http.Post(url, "application/json", strings.NewReader(body)); err == nil {
		_ = resp.Body.Close()
	}
}

func handle(ctx context.Context, event json.RawMessage) (any, error) {
	var o order
	if err := json.Unmarshal(event, &o); err != nil {
		return nil, err
	}
	lc, _ := lambdacontext.FromContext(ctx)
	switch o.Do {
	case "fail":
		return nil, errors.New(o.Text)
	case "panic":
		panic(o.Text)
	case "exit":
		os.Exit(o.N)
	case "hang":
		select {}
	case "bytes":
		return &zeros{left: o.N}, nil
	case "broken":
		return io.MultiReader(strings.NewReader("half"), failing{}), nil
	case "spawn-and-exit":
		s, _ := describe(ctx, lc, order{Do: "spawn"})
		fmt.Println(s.Followed)
		os.Exit(4)
	case "answer-and-exit":
		post("runtime/invocation/"+lc.AwsRequestID+"/response", `"bye"`)
		os.Exit(3)
	case "answer-and-hang":
		post("runtime/invocation/"+lc.AwsRequestID+"/response", `"bye"`)
		select {}
	case "print":
		fmt.Println(o.Text)
		fmt.Fprint(os.Stderr, "no newline")
		os.Exit(0)
	case "touch":
		if err := os.WriteFile(filepath.Join(os.TempDir(), o.Text), nil, 0o600); err != nil {
			return nil, err
		}
	case "touch-and-hang":
		_ = os.WriteFile(filepath.Join(os.TempDir(), o.Text), nil, 0o600)
		select {}
	case "meet": // stays until a file appears that the test makes
		_ = os.WriteFile(filepath.Join(o.Text, fmt.Sprintf("in-%d", os.Getpid())), nil, 0o600)
		for !exists(filepath.Join(o.Text, "go")) {
			time.Sleep(2 * time.Millisecond)
		}
	}
	return describe(ctx, lc, o)
}

func describe(ctx context.Context, lc *lambdacontext.LambdaContext, o order) (seen, error) {
	deadline, _ := ctx.Deadline()
	dir, _ := os.Getwd()
	trace, _ := ctx.Value("x-amzn-trace-id").(string)
	s := seen{
		PID: os.Getpid(), Request: lc.AwsRequestID, ARN: lc.InvokedFunctionArn, Trace: trace,
		Left: time.Until(deadline), Env: os.Environ(), Dir: dir,
	}
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return s, err
	}
	for _, e := range entries {
		s.Files = append(s.Files, e.Name())
	}
	if o.Do == "spawn" {
		child := exec.Command("/bin/sleep", "600")
		child.Stdout = os.Stdout // holds the pipe open
		if err := child.Start(); err != nil {
			return s, err
		}
		s.Followed = child.Process.Pid
	}
	return s, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

type zeros struct{ left int }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), z.left)
	for i := range n {
		p[i] = '0'
	}
	z.left -= n
	return n, nil
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("reader broke") }
