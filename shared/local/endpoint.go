package local

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// callTimeout bounds one call of a stand-in, which may wait 20 seconds for messages.
const callTimeout = time.Minute

// endpoint is one loopback listener for all services, told apart by the prefix of X-Amz-Target as one AWS_ENDPOINT_URL
// for all of them needs.
type endpoint struct {
	url    string
	server *http.Server
	served chan struct{}
	client *http.Client
}

// listen serves services, by their target prefix, on address.
func listen(address string, services map[string]http.Handler) (*endpoint, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for the stand-ins: %w", err)
	}
	route := func(w http.ResponseWriter, r *http.Request) {
		prefix, _, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		if service, known := services[prefix]; known {
			service.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).Encode(Refusal{
			Type: "UnknownOperationException", Message: fmt.Sprintf("no stand-in answers target %q here", prefix),
		})
	}
	e := &endpoint{
		url: "http://" + listener.Addr().String(), served: make(chan struct{}),
		server: &http.Server{Handler: http.HandlerFunc(route), ReadHeaderTimeout: 10 * time.Second},
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: callTimeout},
	}
	go func() {
		defer close(e.served)
		_ = e.server.Serve(listener)
	}()
	return e, nil
}

func (e *endpoint) close() error {
	e.client.CloseIdleConnections()
	err := e.server.Close()
	<-e.served
	return err
}

// Refusal is a service's error as the AWS JSON protocols carry it.
type Refusal struct {
	Type    string `json:"__type"`
	Message string `json:"message"`
}

func (r *Refusal) Error() string { return r.Type + ": " + r.Message }

// call runs one operation, such as "DynamoDB_20120810.CreateTable", as an SDK would but without one, so that this
// package needs none. An error of the service is a *Refusal.
func (e *endpoint) call(ctx context.Context, target string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	request.Header.Set("X-Amz-Target", target)
	request.Header.Set("Content-Type", "application/x-amz-json-1.0")
	response, err := e.client.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", target, err)
	case response.StatusCode == http.StatusOK && out == nil:
		return nil
	case response.StatusCode == http.StatusOK:
		return json.Unmarshal(text, out)
	}
	refused := &Refusal{}
	if err := json.Unmarshal(text, refused); err != nil {
		refused.Type = response.Status
	}
	return fmt.Errorf("%s: %w", target, refused)
}
