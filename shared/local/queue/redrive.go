package queue

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// bury moves the messages among ready that have been received as often as the redrive policy allows, and reports
// whether there were any. A message keeps its id, its attributes and its receive count. In a standard queue it keeps
// the time it was sent, from which retention counts; in a FIFO queue that starts anew, and the message's own id becomes
// its deduplication id
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html).
func (s *Server) bury(q *queue, ready []*message, now time.Time) bool {
	policy, ok := q.set.redrive()
	dead, exists := s.byARN(policy.target)
	if !ok || !exists {
		return false
	}
	any := false
	for _, m := range ready {
		if m.received < policy.after {
			continue
		}
		any = true
		moved := *m
		q.remove(m)
		moved.source, moved.visible, moved.out, moved.handles = s.ARN(q.name), now, false, 0
		if q.fifo {
			moved.sent, moved.dedup, moved.sequence = now.Truncate(time.Millisecond), m.id, dead.nextSequence()
		}
		dead.add(&moved)
	}
	return any
}

// configure checks a change of a queue's settings, and with it that a dead-letter queue exists, is of the same kind and
// allows this queue as its source.
func (s *Server) configure(name string, old settings, change map[string]string) (settings, error) {
	fifo := strings.HasSuffix(name, ".fifo")
	set, err := old.with(change, fifo)
	if err != nil {
		return nil, err
	}
	if _, err := parseAllow(set["RedriveAllowPolicy"]); err != nil {
		return nil, err
	}
	if set["RedrivePolicy"] == "" {
		return set, nil
	}
	policy, err := parseRedrive(set["RedrivePolicy"])
	if err != nil {
		return nil, err
	}
	target, ok := s.byARN(policy.target)
	reason := ""
	switch {
	case !ok || target.name == name:
		reason = "Dead letter target does not exist."
	case target.fifo != fifo:
		reason = "Dead-letter queue must be same type of queue as the source."
	default:
		if allow, _ := parseAllow(target.set["RedriveAllowPolicy"]); !allow.allows(s.ARN(name)) {
			reason = "The dead-letter queue's RedriveAllowPolicy does not allow this queue."
		}
	}
	if reason != "" {
		return nil, bad("Value %s for parameter RedrivePolicy is invalid. Reason: %s", set["RedrivePolicy"], reason)
	}
	return set, nil
}

// redrivePolicy says after how many receives a message goes to which queue.
type redrivePolicy struct {
	target string
	after  int
}

// parseRedrive reads a RedrivePolicy; AWS takes maxReceiveCount as a number or as a string of digits.
func parseRedrive(text string) (redrivePolicy, error) {
	var p struct {
		DeadLetterTargetArn string          `json:"deadLetterTargetArn"`
		MaxReceiveCount     json.RawMessage `json:"maxReceiveCount"`
	}
	err := json.Unmarshal([]byte(text), &p)
	after, notNumber := strconv.Atoi(strings.Trim(string(p.MaxReceiveCount), `"`))
	if err != nil || notNumber != nil || after < 1 || after > 1000 || p.DeadLetterTargetArn == "" {
		return redrivePolicy{}, bad("Value %s for parameter RedrivePolicy is invalid. Reason: "+
			"it needs deadLetterTargetArn and a maxReceiveCount between 1 and 1000.", text)
	}
	return redrivePolicy{target: p.DeadLetterTargetArn, after: after}, nil
}

func (s settings) redrive() (redrivePolicy, bool) {
	p, err := parseRedrive(s["RedrivePolicy"])
	return p, err == nil
}

// allowPolicy says which queues may use a queue as their dead-letter queue.
type allowPolicy struct {
	RedrivePermission string   `json:"redrivePermission"`
	SourceQueueArns   []string `json:"sourceQueueArns"`
}

func parseAllow(text string) (allowPolicy, error) {
	p := allowPolicy{RedrivePermission: "allowAll"}
	if text == "" {
		return p, nil
	}
	err := json.Unmarshal([]byte(text), &p)
	known := slices.Contains([]string{"allowAll", "denyAll", "byQueue"}, p.RedrivePermission)
	if err != nil || !known || (p.RedrivePermission == "byQueue") != (len(p.SourceQueueArns) > 0) ||
		len(p.SourceQueueArns) > 10 {
		return allowPolicy{}, bad("Value %s for parameter RedriveAllowPolicy is invalid. Reason: redrivePermission must be "+
			"allowAll, denyAll, or byQueue with 1 to 10 sourceQueueArns.", text)
	}
	return p, nil
}

func (p allowPolicy) allows(source string) bool {
	return p.RedrivePermission == "allowAll" || slices.Contains(p.SourceQueueArns, source)
}
