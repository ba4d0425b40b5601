package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"sync"

	"abacus/shared/local"
	"abacus/shared/local/demo"
	"abacus/shared/local/sandbox"

	"github.com/spf13/cobra"
)

// execute runs one command line and returns its exit code: 0, or 1 with the error on errs.
func execute(ctx context.Context, args []string, out, errs io.Writer) int {
	root := newCommand(out, errs)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(errs, "abacus: interrupted")
	default:
		fmt.Fprintln(errs, "abacus:", err)
	}
	return 1
}

// newCommand returns the whole command line. Results go to out, the output of functions to errs.
func newCommand(out, errs io.Writer) *cobra.Command {
	root := &cobra.Command{
		Use:           "abacus",
		Short:         "Exact counters on AWS, on one machine",
		SilenceUsage:  true, // a failed run is no wrong usage
		SilenceErrors: true, // execute prints them
	}
	root.SetOut(out)
	root.SetErr(errs)
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newRun(), newLocal(), newBench(), newTorture(), newWAL(), newVersion())
	return root
}

func newRun() *cobra.Command {
	var o demo.Options
	command := &cobra.Command{
		Use:   "run",
		Short: "Count a file of events end to end and compare every counter with the truth",
		Long: `Run builds the functions, starts the whole suite on this machine, sends a file of events half through Kinesis
and half through SQS, every tenth of them twice and five bad records among them, waits until all is counted, and
prints the counters beside a count of the file. It exits 0 only if every number is equal and every bad record is kept.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			o.Out = command.OutOrStdout()
			return demo.Run(command.Context(), o)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.Events, "events", "", "newline-delimited JSON, gzipped or not (default: the sample of flights)")
	flags.StringVar(&o.Rules, "rules", "", "rule file (default: functions/counters.yaml, and flights counted by hand)")
	flags.Uint64Var(&o.Seed, "seed", 1, "decides which way the copies go and where bad records lie")
	return command
}

func newLocal() *cobra.Command {
	var o local.Options
	command := &cobra.Command{
		Use:   "local",
		Short: "Keep the suite up on this machine until interrupted",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			errs := command.ErrOrStderr()
			var mu sync.Mutex
			o.Log = func(line sandbox.Line) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(errs, "%s[%d] %s\n", line.Function, line.Environment, line.Text)
			}
			return serve(command, o)
		},
	}
	flags := command.Flags()
	flags.StringVar(&o.Address, "address", "127.0.0.1:0", "where the stand-ins listen")
	flags.StringVar(&o.Rules, "rules", "", "rule file (default: functions/counters.yaml)")
	return command
}

func serve(command *cobra.Command, o local.Options) error {
	ctx, out := command.Context(), command.OutOrStdout()
	suite, err := local.Start(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "AWS_ENDPOINT_URL=%s\n", suite.URL())
	fmt.Fprintf(out, "AWS_REGION=us-east-1\nAWS_DEFAULT_REGION=us-east-1\n"+
		"AWS_ACCESS_KEY_ID=local\nAWS_SECRET_ACCESS_KEY=local\n")
	for _, name := range suite.Resources() {
		fmt.Fprintf(out, "%s=%s\n", name, suite.Name(name))
	}
	fmt.Fprintln(out, "# the suite is up; interrupt to end it")
	<-ctx.Done()
	return suite.Close()
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print what this program was built from",
		Args:  cobra.NoArgs,
		Run: func(command *cobra.Command, _ []string) {
			fmt.Fprintln(command.OutOrStdout(), version())
		},
	}
}

// version names the commit if the build knows it.
func version() string {
	revision, dirty := "unknown commit", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = ", changed since"
			}
		}
	}
	return fmt.Sprintf("abacus %s%s, %s %s/%s", revision, dirty, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
