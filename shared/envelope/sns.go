package envelope

import (
	"bytes"
	"fmt"
)

// What tells a message of SNS from an event that has such members too: all four are texts, and TopicArn is the ARN of a
// topic (https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html).
var notificationNames = []string{"Type", "MessageId", "TopicArn", "Message"}

// notification opens an object that is a message of SNS. With raw delivery there is none to open.
func (w *walk) notification(object []byte) (bool, error) {
	var v [4][]byte
	if !members(object, notificationNames, v[:]) || !isText(v[1]) {
		return false, nil
	}
	topic, _ := said(v[2])
	message, ok := said(v[3])
	if part := bytes.SplitN(topic, []byte(":"), 6); !ok || len(part) < 6 || string(part[0]) != "arn" ||
		string(part[2]) != "sns" {
		return false, nil
	}
	switch kind, _ := said(v[0]); string(kind) {
	case "Notification":
		return true, w.inner(message)
	case "SubscriptionConfirmation", "UnsubscribeConfirmation":
		return true, fmt.Errorf("%w: it is a %s of SNS and holds no event; answer it by hand", ErrPayload, kind)
	}
	return false, nil
}
