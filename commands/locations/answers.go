package locations

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
)

// remembered is how long the answer to a request with an Idempotency-Key is given again.
const remembered = 24 * time.Hour

// answers are the requests with an Idempotency-Key of the last day of the stream.
type answers struct {
	kept  map[string]answer // by referential and key
	order []aged            // the oldest first
}

// answer is what was asked under a key, and the event that says what came of it.
type answer struct {
	action, request string
	at              time.Time
	revision        eventstore.Revision
}

type aged struct {
	name string
	at   time.Time
}

// keep notes the answer to a request with a key, and forgets those that a day has passed since.
func (a *answers) keep(f commands.Fact, w event.SitesWritten) {
	for len(a.order) > 0 && f.At.Sub(a.order[0].at) >= remembered {
		if old := a.order[0]; a.kept[old.name].at.Equal(old.at) {
			delete(a.kept, old.name)
		}
		a.order = a.order[1:]
	}
	if w.Key == "" {
		return
	}
	a.put(aged{answerName(w.Referential, w.Key), f.At}, answer{w.Action, w.Request, f.At, f.Revision})
}

func (a *answers) put(name aged, x answer) {
	if a.kept == nil {
		a.kept = map[string]answer{}
	}
	a.kept[name.name] = x
	a.order = append(a.order, name)
}

// first is the answer that a request was given before, if it was.
func (a *answers) first(w event.SitesWritten, now time.Time) (answer, bool, error) {
	k, ok := a.kept[answerName(w.Referential, w.Key)]
	if w.Key == "" || !ok || now.Sub(k.at) >= remembered {
		return answer{}, false, nil
	}
	if k.action != w.Action || k.request != w.Request {
		return answer{}, false, ErrOtherRequest
	}
	return k, true, nil
}

func answerName(referential, key string) string { return referential + "/" + key }

// fingerprint is a key as the log keeps it: "" for none.
func fingerprint(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
