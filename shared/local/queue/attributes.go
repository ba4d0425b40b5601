package queue

import (
	"context"
	"slices"
	"strconv"

	"abacus/shared/local/wire"
)

func (s *Server) setAttributes(_ context.Context, r struct {
	QueueUrl   string
	Attributes map[string]string
}) (any, error) {
	q, err := s.find(r.QueueUrl)
	if err != nil {
		return nil, err
	}
	if _, fixed := r.Attributes["FifoQueue"]; fixed {
		return nil, wire.Errorf("InvalidAttributeName", "FifoQueue is set when a queue is made, and never after.")
	}
	set, err := s.configure(q.name, q.set, r.Attributes)
	if err != nil {
		return nil, err
	}
	q.set, q.modified = set, s.config.Now()
	q.notify()
	return struct{}{}, nil
}

// getAttributes returns the attributes named, or all. Those that hold nothing for this queue are left out.
func (s *Server) getAttributes(_ context.Context, r struct {
	QueueUrl       string
	AttributeNames []string
}) (any, error) {
	q, err := s.find(r.QueueUrl)
	if err != nil {
		return nil, err
	}
	all := s.attributes(q)
	shown := map[string]string{}
	for _, name := range r.AttributeNames {
		if _, known := all[name]; !known && name != "All" && !ofFIFO[name] && name != "KmsDataKeyReusePeriodSeconds" {
			return nil, wire.Errorf("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
	}
	for name, value := range all {
		if value != "" && (slices.Contains(r.AttributeNames, name) || slices.Contains(r.AttributeNames, "All")) {
			shown[name] = value
		}
	}
	return map[string]any{"Attributes": shown}, nil
}

func (s *Server) attributes(q *queue) map[string]string {
	now := s.config.Now()
	q.expire(now)
	var visible, out, delayed int
	for _, m := range q.messages {
		switch {
		case m.gone:
		case m.inFlight(now):
			out++
		case m.visible.After(now):
			delayed++
		default:
			visible++
		}
	}
	all := map[string]string{
		"QueueArn":                              s.ARN(q.name),
		"CreatedTimestamp":                      strconv.FormatInt(q.created.Unix(), 10),
		"LastModifiedTimestamp":                 strconv.FormatInt(q.modified.Unix(), 10),
		"ApproximateNumberOfMessages":           strconv.Itoa(visible),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(out),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(delayed),
		"RedrivePolicy":                         q.set["RedrivePolicy"],
		"RedriveAllowPolicy":                    q.set["RedriveAllowPolicy"],
		"KmsMasterKeyId":                        q.set["KmsMasterKeyId"],
	}
	for name := range numbers {
		if name != "KmsDataKeyReusePeriodSeconds" || q.set["KmsMasterKeyId"] != "" {
			all[name] = strconv.Itoa(q.set.number(name))
		}
	}
	for name := range words {
		if q.fifo || !ofFIFO[name] {
			all[name] = q.set.word(name)
		}
	}
	return all
}
