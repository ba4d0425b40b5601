// Package env reads a function's settings from its environment, and reports all that is wrong with them at once, each
// with what to do. It is a package because every function reads the same settings by the same rules.
package env

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"abacus/shared/tally"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
)

// Settings reads settings one by one and gathers their faults. Make it by New, read everything, then ask Err.
type Settings struct {
	get    func(name string) string
	faults []error
}

// New returns Settings that look names up with get, such as os.Getenv. A name that is set to nothing but white space is
// not set.
func New(get func(name string) string) *Settings { return &Settings{get: get} }

// Err returns every fault so far, or nil.
func (s *Settings) Err() error {
	if err := errors.Join(s.faults...); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	return nil
}

// Check adds err, if it is one, to the faults of the setting name.
func (s *Settings) Check(name string, err error) {
	if err != nil {
		s.fault("%s: %w", name, err)
	}
}

func (s *Settings) fault(format string, args ...any) {
	s.faults = append(s.faults, fmt.Errorf(format, args...))
}

func (s *Settings) text(name string) string { return strings.TrimSpace(s.get(name)) }

// Text returns a setting, or otherwise where it is not set.
func (s *Settings) Text(name, otherwise string) string {
	if text := s.text(name); text != "" {
		return text
	}
	return otherwise
}

// Required returns a setting that must be set; what says to what.
func (s *Settings) Required(name, what string) string {
	text := s.text(name)
	if text == "" {
		s.fault("%s is not set: set it to %s", name, what)
	}
	return text
}

// Duration returns a setting such as 35d, 12h or 840h0m0s, or otherwise where it is not set. Less than least is a
// fault.
func (s *Settings) Duration(name string, otherwise, least time.Duration) time.Duration {
	text := s.text(name)
	if text == "" {
		return otherwise
	}
	d, err := tally.ParseDuration(text)
	if err != nil {
		var plain error
		if d, plain = time.ParseDuration(text); plain != nil {
			s.fault("%s: %w", name, err)
			return otherwise
		}
	}
	if d < least || d > tally.MaxDuration {
		s.fault("%s is %s: set it between %s and %s", name, text, tally.FormatDuration(least),
			tally.FormatDuration(tally.MaxDuration))
		return otherwise
	}
	return d
}

// OneOf returns a setting that must be one of values, or the first of them where it is not set.
func (s *Settings) OneOf(name string, values ...string) string {
	text := s.Text(name, values[0])
	if !slices.Contains(values, text) {
		s.fault("%s is %q: this function takes %s", name, text, strings.Join(values, " or "))
		return values[0]
	}
	return text
}

// Level returns the least level to log, INFO where the setting is not set.
func (s *Settings) Level(name string) slog.Level {
	switch text := strings.ToUpper(s.text(name)); text {
	case "DEBUG":
		return slog.LevelDebug
	case "", "INFO":
		return slog.LevelInfo
	case "WARN":
		return slog.LevelWarn
	case "ERROR":
		return slog.LevelError
	default:
		s.fault("%s is %q: set it to DEBUG, INFO, WARN or ERROR", name, text)
		return slog.LevelInfo
	}
}

// QueueURL returns the address of a standard SQS queue, or "" where the setting is not set.
func (s *Settings) QueueURL(name string) string {
	text := s.text(name)
	if text == "" {
		return ""
	}
	at, err := url.Parse(text)
	switch {
	case err != nil || at.Scheme != "https" && at.Scheme != "http" || at.Host == "" || strings.Trim(at.Path, "/") == "":
		s.fault("%s is no queue's URL: set it to one such as https://sqs.eu-west-1.amazonaws.com/111122223333/parked", name)
	case strings.HasSuffix(at.Path, ".fifo"):
		s.fault("%s is a FIFO queue: set it to a standard queue, as on-failure destinations must be", name)
	}
	return text
}

// AWS returns the configuration of AWS clients: region, credentials and endpoints as the SDK finds them in the
// process's own environment, not by the Settings' lookup. It makes no request.
func (s *Settings) AWS(ctx context.Context) aws.Config {
	cfg, err := config.LoadDefaultConfig(ctx)
	switch {
	case err != nil:
		s.fault("AWS configuration: %w", err)
	case cfg.Region == "":
		s.fault("AWS_REGION is not set: set it to the region of the tables")
	}
	return cfg
}
