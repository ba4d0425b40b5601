package queue

import (
	"maps"
	"regexp"
	"strconv"
	"time"

	"abacus/shared/local/wire"
)

var (
	queueName     = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$|^[A-Za-z0-9_-]{1,75}\.fifo$`)
	attributeName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,256}$`)
	entryID       = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)
)

// number is the allowed range of a numeric queue attribute and its default
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html).
type number struct{ least, most, usual int }

var numbers = map[string]number{
	"DelaySeconds":                  {0, 900, 0},
	"MaximumMessageSize":            {1024, 1 << 20, 1 << 20},
	"MessageRetentionPeriod":        {60, 1_209_600, 345_600},
	"ReceiveMessageWaitTimeSeconds": {0, 20, 0},
	"VisibilityTimeout":             {0, 43_200, 30},
	"KmsDataKeyReusePeriodSeconds":  {60, 86_400, 300},
}

// words are the attributes that take one of a few words; the first is the default.
var words = map[string][]string{
	"FifoQueue":                 {"false", "true"},
	"ContentBasedDeduplication": {"false", "true"},
	"DeduplicationScope":        {"queue", "messageGroup"},
	"FifoThroughputLimit":       {"perQueue", "perMessageGroupId"},
	"SqsManagedSseEnabled":      {"true", "false"},
}

// ofFIFO are the attributes that a standard queue cannot have.
var ofFIFO = map[string]bool{"FifoQueue": true, "ContentBasedDeduplication": true, "DeduplicationScope": true,
	"FifoThroughputLimit": true}

// texts are the attributes that an empty value takes away.
var texts = map[string]bool{"RedrivePolicy": true, "RedriveAllowPolicy": true, "KmsMasterKeyId": true}

// settings are the attributes that a client sets, checked, by AWS's names.
type settings map[string]string

func (s settings) number(name string) int {
	if text, set := s[name]; set {
		n, _ := strconv.Atoi(text)
		return n
	}
	return numbers[name].usual
}

func (s settings) seconds(name string) time.Duration {
	return time.Duration(s.number(name)) * time.Second
}

func (s settings) word(name string) string {
	if text, set := s[name]; set {
		return text
	}
	return words[name][0]
}

func (s settings) is(name string) bool { return s.word(name) == "true" }

// with returns the settings after a change for a queue that is FIFO or not.
func (s settings) with(change map[string]string, fifo bool) (settings, error) {
	out := maps.Clone(s)
	for name, value := range change {
		limits, numeric := numbers[name]
		choice, worded := words[name]
		switch {
		case ofFIFO[name] && !fifo:
			return nil, wire.Errorf("InvalidAttributeName", "Unknown Attribute %s: a standard queue does not have it.", name)
		case value == "" && texts[name]:
			delete(out, name)
			continue
		case numeric:
			if n, err := strconv.Atoi(value); err != nil || n < limits.least || n > limits.most {
				return nil, wire.Errorf("InvalidAttributeValue",
					"Invalid value for the parameter %s: it must be a whole number from %d to %d.", name, limits.least, limits.most)
			}
		case worded:
			if value != choice[0] && value != choice[1] {
				return nil, wire.Errorf("InvalidAttributeValue",
					"Invalid value for the parameter %s: it must be %s or %s.", name, choice[0], choice[1])
			}
		case !texts[name]:
			return nil, wire.Errorf("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
		out[name] = value
	}
	return out, nil
}
