package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// counter is a service with one operation, Count, which answers how often it was applied.
func counter() (*Service, *atomic.Int64) {
	applied := new(atomic.Int64)
	return &Service{Target: "Counter_1", Version: "1.1", Namespace: "example.counter", Operations: map[string]Operation{
		"Count": func(_ context.Context, body []byte) (any, error) {
			if strings.Contains(string(body), "bad") {
				return nil, &Error{Code: "BadBody", Message: "no", Fields: map[string]any{"Item": 7}}
			}
			return map[string]int64{"Count": applied.Add(1)}, nil
		},
		"Break":   func(context.Context, []byte) (any, error) { return nil, errors.New("broken") },
		"Encoded": func(context.Context, []byte) (any, error) { return Encoded(`{ "as":"it is" }`), nil },
		"Odd":     func(context.Context, []byte) (any, error) { return func() {}, nil },
	}}, applied
}

// call makes one call; a connection that is cut gives status 0.
func call(t *testing.T, ctx context.Context, url, target, body string) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", target)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	if got := resp.Header.Get("Content-Type"); got != "application/x-amz-json-1.1" {
		t.Errorf("content type %q", got)
	}
	return resp.StatusCode, string(text)
}

func serve(t *testing.T, s *Service) string {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

func TestService_RoutesAndEncodes(t *testing.T) {
	s, _ := counter()
	s.MaxBody = 20
	url := serve(t, s)
	for _, c := range []struct {
		target, body string
		status       int
		want         string
	}{
		{"Counter_1.Count", "{}", 200, `{"Count":1}`},
		{"Counter_1.Encoded", "{}", 200, `{ "as":"it is" }`},
		{"Counter_1.Count", "bad", 400, `{"Item":7,"__type":"example.counter#BadBody","message":"no"}`},
		{"Counter_1.Break", "{}", 500, `{"__type":"example.counter#InternalServerError","message":"broken"}`},
		{"Counter_1.Odd", "{}", 500, `{"__type":"InternalServerError"}`},
		{"Counter_1.Other", "{}", 400, `"__type":"example.counter#UnknownOperationException"`},
		{"Counter_2.Count", "{}", 400, `"__type":"example.counter#UnknownOperationException"`},
		{"", "{}", 400, `"__type":"example.counter#UnknownOperationException"`},
		{"Counter_1.Count", strings.Repeat(" ", 20), 200, `{"Count":2}`},
		{"Counter_1.Count", strings.Repeat(" ", 21), 413, `"__type":"example.counter#RequestEntityTooLarge"`},
	} {
		status, answer := call(t, t.Context(), url, c.target, c.body)
		if status != c.status || !strings.Contains(answer, c.want) {
			t.Errorf("%s %q: %d %s, want %d %s", c.target, c.body, status, answer, c.status, c.want)
		}
	}
	if got := s.Calls(); got != 6 {
		t.Errorf("%d calls were counted, want the 6 that reached an operation", got)
	}
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 400 {
		t.Errorf("a GET is answered with %d", resp.StatusCode)
	}
}

func TestService_WithoutANamespace(t *testing.T) {
	s, _ := counter()
	s.Namespace = ""
	_, answer := call(t, t.Context(), serve(t, s), "Counter_1.Count", "bad")
	var body struct {
		Type string `json:"__type"`
	}
	if err := json.Unmarshal([]byte(answer), &body); err != nil || body.Type != "BadBody" {
		t.Errorf("%s: %v", answer, err)
	}
}

func TestFault_EachKindOfFailure(t *testing.T) {
	slow := &Error{Code: "Slow", Message: "down", Status: 503}
	for name, c := range map[string]struct {
		fault   Fault
		status  int
		applied int64
	}{
		"healthy":               {Fault{}, 200, 1},
		"before":                {Fault{Before: slow}, 503, 0},
		"before, plain":         {Fault{Before: errors.New("plain")}, 500, 0},
		"after":                 {Fault{After: slow}, 503, 1},
		"lost":                  {Fault{Lose: true}, 0, 1},
		"refused":               {Fault{Refuse: true}, 0, 0},
		"refused, applied late": {Fault{Refuse: true, Late: time.Hour}, 0, 1},
		"before, applied late":  {Fault{Before: slow, Late: time.Hour}, 503, 1},
		"hangs":                 {Fault{Hang: true}, 0, 0},
		"hangs after applying":  {Fault{Hang: true, Lose: true}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, applied := counter()
			late := make(chan func(), 1)
			s.After = func(d time.Duration, f func()) {
				if d != time.Hour {
					t.Errorf("late by %s", d)
				}
				late <- f
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s.Fault = func(got Call) Fault {
				if got.N != 1 || got.Name != "Count" || string(got.Body) != "{}" {
					t.Errorf("call %+v", got)
				}
				if c.fault.Hang {
					cancel() // the client gives up
				}
				return c.fault
			}
			server := httptest.NewServer(s)
			defer server.Close()
			if status, answer := call(t, ctx, server.URL, "Counter_1.Count", "{}"); status != c.status {
				t.Errorf("status %d (%s), want %d", status, answer, c.status)
			}
			server.Close() // waits for the call to end
			if c.fault.Late > 0 {
				if applied.Load() != 0 {
					t.Error("the late half was applied at once")
				}
				(<-late)()
			}
			if applied.Load() != c.applied {
				t.Errorf("applied %d times, want %d", applied.Load(), c.applied)
			}
		})
	}
}

func TestInject_ReplacesAndHeals(t *testing.T) {
	s, applied := counter()
	s.Fault = func(Call) Fault { return Fault{Before: errors.New("first")} }
	url := serve(t, s)
	expect := func(want int) {
		t.Helper()
		if status, answer := call(t, t.Context(), url, "Counter_1.Count", "{}"); status != want {
			t.Errorf("%d %s, want %d", status, answer, want)
		}
	}
	expect(500)
	s.Inject(func(Call) Fault { return Fault{Before: &Error{Code: "Second", Status: 503}} })
	expect(503)
	s.Inject(nil)
	expect(200)
	if applied.Load() != 1 {
		t.Errorf("applied %d times", applied.Load())
	}
}

// A service finishes what a client has left.
func TestService_WorkOutlivesItsClient(t *testing.T) {
	entered, leave, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	wait := func(ctx context.Context, _ []byte) (any, error) {
		close(entered)
		<-leave
		done <- ctx.Err()
		return nil, nil
	}
	s := &Service{Target: "T", Version: "1.1", Operations: map[string]Operation{"Wait": wait}}
	url := serve(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-entered; cancel() }()
	if status, _ := call(t, ctx, url, "T.Wait", "{}"); status != 0 {
		t.Errorf("status %d", status)
	}
	close(leave)
	if err := <-done; err != nil {
		t.Errorf("the operation's context ended with its client: %v", err)
	}
}
