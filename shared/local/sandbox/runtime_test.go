package sandbox

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// raw serves a Runtime API without a process behind it.
func raw(t *testing.T) (api *runtimeAPI, call func(method, path, body string) (int, string)) {
	t.Helper()
	gone := make(chan struct{})
	api = newRuntimeAPI("arn:test", gone)
	mux := http.NewServeMux()
	api.register(mux)
	server := httptest.NewServer(mux)
	t.Cleanup(func() { close(gone); server.Close() })
	return api, func(method, path, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
}

func TestRuntimeAPI_RefusesWhatIsOutOfTurn(t *testing.T) {
	api, call := raw(t)
	const next, answerTo = "/2018-06-01/runtime/invocation/next", "/2018-06-01/runtime/invocation/"
	for _, path := range []string{"/2018-06-01/runtime/other", "/2020-01-01/extension/register", "/"} {
		if status, body := call("POST", path, ""); status != 404 || !strings.Contains(body, "errorMessage") {
			t.Errorf("POST %s: %d %s, want 404 and a reason", path, status, body)
		}
	}
	if status, _ := call("POST", answerTo+"x/response", "{}"); status != 400 {
		t.Errorf("answer to an event that was never handed out: %d, want 400", status)
	}
	inv := &invocation{id: "x", payload: []byte(`{"a":1}`), deadline: time.UnixMilli(1234), reply: make(chan answer, 1)}
	go func() { api.work <- inv }()
	if status, body := call("GET", next, ""); status != 200 || body != `{"a":1}` {
		t.Fatalf("next: %d %s", status, body)
	}
	if status, _ := call("GET", next, ""); status != 403 {
		t.Errorf("next before the answer: %d, want 403", status)
	}
	if status, _ := call("POST", answerTo+"y/response", "{}"); status != 400 {
		t.Errorf("answer to another event: %d, want 400", status)
	}
	if status, _ := call("POST", answerTo+"x/response", `"ok"`); status != 202 {
		t.Errorf("answer: %d, want 202", status)
	}
	if got := <-inv.reply; string(got.payload) != `"ok"` || got.err != nil {
		t.Errorf("reply %+v", got)
	}
	if status, _ := call("POST", answerTo+"x/error", `{}`); status != 400 {
		t.Errorf("second answer: %d, want 400", status)
	}
}

func TestRuntimeAPI_ErrorsNeedNotBeJSON(t *testing.T) {
	for _, c := range []struct{ body, header, kind string }{
		{`{"errorMessage":"m","errorType":"T"}`, "H", "T"},
		{`not json`, "H", "H"},
		{``, "", "Runtime.UnknownReason"},
	} {
		failure := parseFunctionError([]byte(c.body), c.header)
		if failure.Type != c.kind || string(failure.Payload) != c.body {
			t.Errorf("%q with header %q: %+v, want type %s", c.body, c.header, failure, c.kind)
		}
	}
}

func TestRuntimeAPI_ReportsAnInitErrorOnce(t *testing.T) {
	api, call := raw(t)
	if status, _ := call("POST", "/2018-06-01/runtime/init/error", `{"errorType":"A"}`); status != 202 {
		t.Errorf("first report: %d, want 202", status)
	}
	if status, _ := call("POST", "/2018-06-01/runtime/init/error", `{"errorType":"B"}`); status != 403 {
		t.Errorf("second report: %d, want 403", status)
	}
	if failure := <-api.inits; failure.Type != "A" {
		t.Errorf("init error %v", failure)
	}
}
