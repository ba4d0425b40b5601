package table

import (
	"context"
	"strconv"
	"strings"
	"time"
)

// maxExpiryAge: DynamoDB leaves an item alone whose time lies more than five years back
// (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-before-you-start.html).
const maxExpiryAge = 5 * 365 * 24 * time.Hour

type ttlSpecification struct {
	AttributeName string
	Enabled       *bool
}

type ttlRequest struct {
	TableName               string
	TimeToLiveSpecification *ttlSpecification
}

type ttlAnswer struct{ TimeToLiveSpecification *ttlSpecification }

func (s *Service) updateTimeToLive(_ context.Context, q *ttlRequest) (*ttlAnswer, error) {
	wish := q.TimeToLiveSpecification
	if wish == nil || wish.Enabled == nil || wish.AttributeName == "" || len(wish.AttributeName) > 255 {
		return nil, invalid("1 validation error detected: Value at 'timeToLiveSpecification' failed to satisfy constraint: " +
			"Member must have an attribute name of 1 to 255 characters and say whether it is enabled")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.table(q.TableName)
	switch {
	case err != nil:
		return nil, err
	case *wish.Enabled && t.ttl != "":
		return nil, invalid("TimeToLive is already enabled")
	case !*wish.Enabled && t.ttl == "":
		return nil, invalid("TimeToLive is already disabled")
	case !*wish.Enabled && t.ttl != wish.AttributeName:
		return nil, invalid("TimeToLive is active on a different AttributeName: current AttributeName is %s", t.ttl)
	}
	if t.ttl = ""; *wish.Enabled {
		t.ttl = wish.AttributeName
	}
	return &ttlAnswer{wish}, nil
}

type ttlDescription struct {
	TimeToLiveStatus string
	AttributeName    string `json:",omitzero"`
}

type describeTTLAnswer struct{ TimeToLiveDescription ttlDescription }

func (s *Service) describeTimeToLive(_ context.Context, q *tableRequest) (*describeTTLAnswer, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, err := s.table(q.TableName)
	if err != nil {
		return nil, err
	}
	if t.ttl == "" {
		return &describeTTLAnswer{ttlDescription{TimeToLiveStatus: "DISABLED"}}, nil
	}
	return &describeTTLAnswer{ttlDescription{"ENABLED", t.ttl}}, nil
}

// Expire deletes every item whose TTL has passed by the clock, and returns how many. Until it is called they are read
// and written like any others, as with AWS for days. It costs no capacity.
func (s *Service) Expire() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, count := s.config.Now(), 0
	for _, t := range s.tables {
		var gone []row
		for w := range t.rows.between("", "", true) {
			if t.ttl != "" && w.item[t.ttl].expired(now) && !t.held[w.place] {
				gone = append(gone, w)
			}
		}
		for _, w := range gone {
			t.put(w.place, w.item, nil)
			s.tell(t, w.item, w.item, nil, true)
		}
		count += len(gone)
	}
	return count
}

// expired reports whether v is a number of seconds since 1970 that lies in the past, but not too far back.
func (v Value) expired(now time.Time) bool {
	if v.kind != kindN {
		return false
	}
	whole, _, _ := strings.Cut(v.text, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	return err == nil && seconds < now.Unix() && seconds > now.Add(-maxExpiryAge).Unix()
}
