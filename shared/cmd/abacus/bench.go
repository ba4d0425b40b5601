package main

import (
	"time"

	"abacus/shared/local/bench"

	"github.com/spf13/cobra"
)

func newBench() *cobra.Command {
	var o bench.Options
	command := &cobra.Command{
		Use:   "bench",
		Short: "Measure requests, write units, time and memory beside a hand-written reference",
		Long: `Bench prints medians, ratios and the targets they are held to. The reference marks each event as seen and then
adds to each key, one call after the other. It exits 1 if a figure missed its target.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			o.Out = command.OutOrStdout()
			return bench.Run(command.Context(), o)
		},
	}
	flags := command.Flags()
	flags.StringSliceVar(&o.Rows, "rows", nil, "measure only these: wire, cpu, latency, invoke, hot, process")
	flags.IntVar(&o.Rounds, "rounds", 3, "measurements of which the median is printed; an odd number")
	flags.StringVar(&o.Root, "root", ".", "folder of the module")
	command.AddCommand(newBenchServe())
	return command
}

func newBenchServe() *cobra.Command {
	var latency time.Duration
	command := &cobra.Command{
		Use: "serve", Hidden: true, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return bench.Serve(latency, command.InOrStdin(), command.OutOrStdout())
		},
	}
	command.Flags().DurationVar(&latency, "latency", 0, "added to every call")
	return command
}
