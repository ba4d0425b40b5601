package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"abacus/shared/dynamo"
	"abacus/shared/local/table"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Serve runs a DynamoDB stand-in in this process until its standard input ends, and prints its address. A benchmark
// starts it as a process of its own, so that the client's CPU time is the client's alone.
func Serve(latency time.Duration, in io.Reader, out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: table.New(table.Config{Latency: latency}), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	fmt.Fprintf(out, "http://%s\n", listener.Addr())
	_, _ = io.Copy(io.Discard, in)
	return server.Close()
}

// stand is a DynamoDB stand-in in another process.
type stand struct {
	url  string
	stop func()
}

// startStand starts this program again as `abacus bench serve`.
func startStand(ctx context.Context, latency time.Duration) (*stand, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	command := exec.CommandContext(ctx, self, "bench", "serve", "--latency", latency.String())
	command.Stderr = os.Stderr
	in, inErr := command.StdinPipe()
	out, outErr := command.StdoutPipe()
	if err := errors.Join(inErr, outErr, command.Start()); err != nil {
		cancel()
		return nil, fmt.Errorf("start the stand-in: %w", err)
	}
	stop := func() {
		_ = in.Close()
		time.AfterFunc(5*time.Second, cancel)
		_ = command.Wait()
		cancel()
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return nil, fmt.Errorf("start the stand-in: %w", err)
	}
	return &stand{url: strings.TrimSpace(line), stop: stop}, nil
}

func clientOf(url string) *dynamodb.Client {
	return dynamo.NewClient(aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(url),
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", ""),
	})
}

const countersTable, dedupTable = "bench-counters", "bench-dedup"

func makeTables(ctx context.Context, client *dynamodb.Client) error {
	_, err := client.CreateTable(ctx, dynamo.CountersTable.CreateTable(countersTable))
	if err != nil {
		return err
	}
	_, err = client.CreateTable(ctx, dynamo.DedupTable.CreateTable(dedupTable))
	return err
}
