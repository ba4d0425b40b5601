// Command empty is a Lambda function that does nothing: what a cold start costs without any of ours.
package main

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-lambda-go/lambda"
)

func main() {
	lambda.Start(func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"batchItemFailures":[]}`), nil
	})
}
