package loopback_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"abacus/shared/local/loopback"
)

func TestClient_CarriesARequestAndItsAnswer(t *testing.T) {
	client := loopback.Client(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Host+" "+r.Header.Get("X-Sent"))
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(append([]byte("got "), body...))
	}))
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://somewhere:1/x",
		strings.NewReader("tea"))
	request.Header.Set("X-Sent", "a")
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	seen := response.Header.Get("X-Seen")
	if response.StatusCode != http.StatusTeapot || string(body) != "got tea" || seen != "somewhere:1 a" {
		t.Errorf("answer %d %q %q", response.StatusCode, body, seen)
	}
}

func TestClient_AbortedHandlerCutsTheConnection(t *testing.T) {
	client := loopback.Client(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	response, err := client.Get("http://x/")
	if err == nil {
		response.Body.Close()
		t.Fatal("an aborted handler gave an answer")
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v, want a cut connection", err)
	}
}

func TestClient_HandlerSeesTheClientLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := make(chan time.Time, 1)
		client := loopback.Client(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			left <- time.Now()
		}))
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://x/", nil)
		response, err := client.Do(request)
		if err == nil {
			response.Body.Close()
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the deadline", err)
		}
		if waited := (<-left).Sub(start); waited != time.Hour {
			t.Errorf("the handler saw its client leave after %v, want 1h", waited)
		}
	})
}
