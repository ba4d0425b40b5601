package main

import (
	"abacus/shared/local/torture"

	"github.com/spf13/cobra"
)

func newTorture() *cobra.Command {
	var o torture.Options
	command := &cobra.Command{
		Use:   "torture",
		Short: "Run the whole suite under seeded schedules of faults and hold every counter against the truth",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			o.Out = command.OutOrStdout()
			return torture.Run(command.Context(), o)
		},
	}
	flags := command.Flags()
	flags.IntVar(&o.Schedules, "schedules", 200, "how many schedules")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the first schedule; the next ones count up")
	flags.IntVar(&o.Parallel, "parallel", 12, "schedules at one time")
	flags.BoolVar(&o.Verbose, "verbose", false, "print what the functions of a broken schedule wrote last")
	return command
}
