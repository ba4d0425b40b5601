// Package loopback carries HTTP between a client and a handler of the same process, without a socket. A stand-in behind
// it runs inside a testing/synctest bubble, where a network read would stop the fake clock from moving on.
package loopback

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
)

// Client returns an HTTP client whose every request, to whatever host, is answered by handler.
func Client(handler http.Handler) *http.Client {
	return &http.Client{Transport: transport{handler: handler}}
}

type transport struct{ handler http.Handler }

// RoundTrip serves one request on a goroutine of its own, as a server does: when the client gives up, the handler sees
// its context end and goes on alone. A handler that panics with http.ErrAbortHandler cuts the connection.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		read, err := io.ReadAll(r.Body)
		if closing := r.Body.Close(); err != nil || closing != nil {
			return nil, errors.Join(err, closing)
		}
		body = read
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	served := r.Clone(ctx)
	served.Body = io.NopCloser(bytes.NewReader(body))
	served.RequestURI = served.URL.RequestURI()
	if served.Host == "" {
		served.Host = r.URL.Host
	}
	answers := make(chan *answer, 1)
	go func() {
		defer cancel()
		answers <- serve(t.handler, served)
	}()
	select {
	case a := <-answers:
		return a.response(r)
	case <-r.Context().Done():
		cancel()
		return nil, r.Context().Err()
	}
}

func serve(handler http.Handler, r *http.Request) (a *answer) {
	a = &answer{header: http.Header{}}
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case http.ErrAbortHandler:
			a.cut = true
		default:
			panic(cause)
		}
	}()
	handler.ServeHTTP(a, r)
	return a
}

// answer is the http.ResponseWriter of one request.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
	cut    bool
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

func (a *answer) response(r *http.Request) (*http.Response, error) {
	if a.cut {
		return nil, io.ErrUnexpectedEOF
	}
	a.WriteHeader(http.StatusOK)
	return &http.Response{
		Status: http.StatusText(a.status), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body.Bytes())), ContentLength: int64(a.body.Len()), Request: r,
	}, nil
}
