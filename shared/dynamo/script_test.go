package dynamo

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// request is one call as it came over the wire.
type request struct {
	Operation string
	Body      map[string]any
}

// reply is what a script answers. The zero value is a bare success.
type reply struct {
	status int    // 0: 200
	body   string // empty: {}
	hang   bool   // no answer until the client leaves
	cut    bool   // the connection is cut
}

// refusalOf answers with the code and further members of an error's body.
func refusalOf(code, more string) reply {
	if more != "" {
		more = "," + more
	}
	body := fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"m"%s}`, code, more)
	return reply{status: 400, body: body}
}

// script is an endpoint that answers each operation with its replies in turn, the last one for ever, and records all
// requests. An operation without replies succeeds.
type script struct {
	replies map[string][]reply

	mu       sync.Mutex
	requests []request
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	data, _ := io.ReadAll(r.Body)
	body := map[string]any{}
	if err := json.Unmarshal(data, &body); err != nil {
		panic(err)
	}
	s.mu.Lock()
	s.requests = append(s.requests, request{operation, body})
	answer := reply{}
	if queue := s.replies[operation]; len(queue) > 0 {
		if answer = queue[0]; len(queue) > 1 {
			s.replies[operation] = queue[1:]
		}
	}
	s.mu.Unlock()
	switch {
	case answer.hang:
		<-r.Context().Done()
		return
	case answer.cut:
		panic(http.ErrAbortHandler)
	}
	if answer.body == "" {
		answer.body = "{}"
		if operation == operationBatch && answer.status == 0 {
			answer.body = answersTo(body)
		}
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.WriteHeader(max(answer.status, http.StatusOK))
	_, _ = io.WriteString(w, answer.body)
}

// answersTo is a success for each statement.
func answersTo(body map[string]any) string {
	n := len(body["Statements"].([]any))
	return `{"Responses":[` + strings.TrimSuffix(strings.Repeat(`{"TableName":"t"},`, n), ",") + `]}`
}

func (s *script) seen() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request(nil), s.requests...)
}

// operations returns the names of the requests seen, in order.
func (s *script) operations() string {
	var names []string
	for _, r := range s.seen() {
		names = append(names, r.Operation)
	}
	return strings.Join(names, " ")
}

// scripted returns options for an endpoint that follows the script.
func scripted(t testing.TB, s *script) Options {
	t.Helper()
	return optionsFor(NewClient(configFor(serve(t, s))))
}
