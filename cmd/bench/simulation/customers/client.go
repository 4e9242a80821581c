package customers

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"
)

// attempts is how often a client sends a request that fails or gets no answer, and retryPause how long it waits between, times the
// number of attempts before.
const (
	attempts   = 4
	retryPause = 2 * time.Second
)

// client sends the requests of one actor and holds each answer against what holds for all.
type client struct {
	world  World
	token  string
	marker string // of the account that asks, "" for operators, who may see all
}

// tried is what became of a request after all its attempts.
type tried struct {
	Answer
	isUnknown bool // it may have been done, though the last answer does not say so
	sent      int  // attempts that reached an instance
}

// isDone says whether the last answer is a success.
func (t tried) isDone() bool { return t.Status >= 200 && t.Status < 300 }

// once sends a request to an instance, and to the next one where no connection is made.
func (c *client) once(ctx context.Context, instance int, s Surface, r Request) Answer {
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	if r.Body != nil && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	var a Answer
	for i := range c.world.Instances() {
		wasDisturbed := c.world.IsDisturbed()
		a = c.world.Call(ctx, (instance+i)%c.world.Instances(), s, r)
		c.check(r, a, wasDisturbed)
		if a.IsSent {
			break
		}
	}
	return a
}

// check holds an answer against the rules that are the same for all requests.
func (c *client) check(r Request, a Answer, wasDisturbed bool) {
	if a.Status >= 500 && !wasDisturbed && !c.world.IsDisturbed() {
		c.world.Report(NoFailureAlone, "%s %s: %d %s", r.Method, r.Path, a.Status, shorten(a.Body))
	}
	if c.marker == "" || a.Status == 0 {
		return
	}
	for text := string(a.Body); ; {
		_, after, found := strings.Cut(text, markerSign)
		if !found {
			return
		}
		if !strings.HasPrefix(after, c.marker+markerEnd) {
			c.world.Report(NoStrangersData, "%s %s of %s shows %s", r.Method, r.Path, c.marker, shorten([]byte(after)))
			return
		}
		text = after
	}
}

// Texts that a customer stores carry a mark that says whose they are.
const markerSign, markerEnd = "Lieu de ", "!"

// mark is a text that belongs to an account.
func mark(account, text string) string { return markerSign + account + markerEnd + " " + text }

// persist sends a request again while its outcome is not known, as a client does that wants it done.
func (c *client) persist(ctx context.Context, instance int, s Surface, r Request) (t tried) {
	for n := range attempts {
		t.Answer = c.once(ctx, instance+n, s, r)
		if t.IsSent {
			t.sent++
		}
		if t.Status != 0 && t.Status < 500 {
			return t
		}
		t.isUnknown = t.isUnknown || t.IsSent
		time.Sleep(time.Duration(n+1) * retryPause)
	}
	return t
}

// expect reports an answer whose status is none of those allowed. 5xx and no answer are not for it to judge.
func (c *client) expect(r Request, a Answer, allowed ...int) bool {
	if a.Status == 0 || a.Status >= 500 {
		return false
	}
	if !slices.Contains(allowed, a.Status) {
		c.world.Report(StatusAllowed, "%s %s %s: %d %s, want one of %v", r.Method, r.Path, shorten(r.Body), a.Status, shorten(a.Body), allowed)
		return false
	}
	return true
}

// read decodes the body of a success; false where it is none.
func (a Answer) read(into any) bool {
	return a.Status >= 200 && a.Status < 300 && json.Unmarshal(a.Body, into) == nil
}

func shorten(b []byte) string {
	if len(b) > 300 {
		return string(b[:300]) + "…"
	}
	return string(b)
}

// encode is a JSON body.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // only maps, texts and numbers are encoded
	}
	return text
}
