package locations

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/refusal"
)

// idempotencyWindow is how long the answer to a request with an Idempotency-Key is given again.
const idempotencyWindow = 24 * time.Hour

// idempotencyCache are the requests with an Idempotency-Key of the last day of the stream.
type idempotencyCache struct {
	requests    map[string]answeredRequest // by referential and key
	oldestFirst []requestAge               // the oldest first
}

// answeredRequest is what was asked under a key, and the event that says what came of it.
type answeredRequest struct {
	action, request string
	at              time.Time
	revision        eventstore.Revision
}

type requestAge struct {
	key        string
	answeredAt time.Time
}

// remember notes the answer to a request with a key, and forgets those that a day has passed since.
func (c *idempotencyCache) remember(rec commands.Record, w event.SiteWriteSummary) {
	for len(c.oldestFirst) > 0 && rec.At.Sub(c.oldestFirst[0].answeredAt) >= idempotencyWindow {
		if oldest := c.oldestFirst[0]; c.requests[oldest.key].at.Equal(oldest.answeredAt) {
			delete(c.requests, oldest.key)
		}
		c.oldestFirst = c.oldestFirst[1:]
	}
	if w.IdempotencyKeyHash == "" {
		return
	}
	c.insert(requestAge{requestKey(w.Referential, w.IdempotencyKeyHash), rec.At}, answeredRequest{w.Action, w.RequestHash, rec.At, rec.Revision})
}

func (c *idempotencyCache) insert(age requestAge, request answeredRequest) {
	if c.requests == nil {
		c.requests = map[string]answeredRequest{}
	}
	c.requests[age.key] = request
	c.oldestFirst = append(c.oldestFirst, age)
}

// findAnswered is the answer that a request was given before, if it was.
func (c *idempotencyCache) findAnswered(w event.SiteWriteSummary, now time.Time) (answeredRequest, bool, error) {
	answered, ok := c.requests[requestKey(w.Referential, w.IdempotencyKeyHash)]
	if w.IdempotencyKeyHash == "" || !ok || now.Sub(answered.at) >= idempotencyWindow {
		return answeredRequest{}, false, nil
	}
	if answered.action != w.Action || answered.request != w.RequestHash {
		return answeredRequest{}, false, refusal.IdempotencyMismatch
	}
	return answered, true, nil
}

func requestKey(referential, key string) string { return referential + "/" + key }

// hashIdempotencyKey is a key as the log keeps it: "" for none.
func hashIdempotencyKey(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
