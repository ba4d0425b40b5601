package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"abacus/shared/wal"

	"github.com/spf13/cobra"
)

func newWAL() *cobra.Command {
	command := &cobra.Command{
		Use:   "wal",
		Short: "Look at a write-ahead log",
	}
	command.AddCommand(newWALInspect())
	return command
}

func newWALInspect() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "inspect DIR",
		Short: "Print the segments, positions and damage of the log in a directory",
		Long: `Inspect reads the whole log and changes nothing: it neither takes the log over nor repairs it, and may be run
while the log's owner is running. Damage is printed, and is no failure of the command.`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			found, err := wal.Inspect(args[0])
			if err != nil {
				return err
			}
			out := command.OutOrStdout()
			if asJSON {
				encoder := json.NewEncoder(out)
				encoder.SetIndent("", "  ")
				return encoder.Encode(found)
			}
			printLog(out, found)
			return nil
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return command
}

func printLog(out io.Writer, in *wal.Inspection) {
	switch {
	case in.Running:
		fmt.Fprintf(out, "owner      %s, running: what it is appending may show as a torn end\n", in.Owner)
	case in.Owner != "":
		fmt.Fprintf(out, "owner      none now; %s ended without closing the log\n", in.Owner)
	}
	fmt.Fprintf(out, "truncated  through %d\nrecords    %d\n\n", in.Truncated, in.Records)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "segment\tbytes\tframes\trecords\tfirst\tlast\tend\t")
	for _, s := range in.Segments {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n",
			s.Name, s.Bytes, s.Frames, s.Records, s.First, s.Last, s.End, condition(s))
	}
	table.Flush()
	for _, d := range in.Damage {
		fmt.Fprintf(out, "\ndamage     %s", d)
	}
	if len(in.Damage) > 0 {
		fmt.Fprintln(out)
	}
	for title, names := range map[string][]string{"kept aside": in.Aside, "not of it ": in.Foreign} {
		if len(names) > 0 {
			fmt.Fprintf(out, "\n%s %s\n", title, strings.Join(names, ", "))
		}
	}
}

// condition says in words what is notable about a segment.
func condition(s wal.SegmentInfo) string {
	switch {
	case s.Void:
		return "  void: the next open deletes it"
	case s.Torn > 0:
		return fmt.Sprintf("  %d bytes of a torn append", s.Torn)
	case s.Closed:
		return "  closed in order"
	}
	return ""
}
