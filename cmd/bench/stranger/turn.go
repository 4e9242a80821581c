package stranger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"lieudit/schemas/plan"
)

// attack is one attack of the stranger. run repeats it until ctx ends, and returns soon after.
type attack struct {
	name        string
	plan        plan.Name // the cheapest whose keys can do it
	connections int       // that the service works for at once; the attack is compared with as many honest ones
	run         func(ctx context.Context, t *turn)
}

// turn is the time in which one attack runs: what the attack needs, and the outcomes of its requests.
type turn struct {
	address  string
	world    *world
	account  account
	duration time.Duration
	seed     uint64
	outcomes outcomes
}

func newTurn(address string, w *world, a attack, duration time.Duration, seed uint64) *turn {
	return &turn{address: address, world: w, account: w.accounts[a.plan], duration: duration, seed: seed, outcomes: outcomes{all: map[string]int{}}}
}

// outcomes counts answers by status, and connections by how they ended. It is safe for concurrent use.
type outcomes struct {
	mu  sync.Mutex
	all map[string]int
}

func (o *outcomes) add(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[what]++
}

// addAnswer counts an answer, or the failure if there was none.
func (o *outcomes) addAnswer(status int, err error) {
	if status == 0 && err != nil {
		o.add(describeFailure(err))
		return
	}
	o.add(fmt.Sprint(status))
}

func (o *outcomes) counts() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.all)
}

// The outcomes of connections that are held.
const (
	stillOpen         = "open at the end"
	endedByService    = "ended by the service"
	wholeAnswer       = "answered as a whole"
	failedConnections = "not connected"
)

// The limits of a worker's loop, besides its time.
const (
	maxRepeats   = 1_000_000
	retryPause   = 100 * time.Millisecond // after a failure
	drainTimeout = time.Second
)

// repeat sends requests over n connections at a time, on each the next one after the answer to the last one. newRequest makes the i-th
// request of a connection; the seed decides its random numbers.
func (t *turn) repeat(ctx context.Context, n int, newRequest func(random *rand.Rand, i int) request) {
	runAll(n, func(worker int) {
		random := rand.New(rand.NewPCG(t.seed, uint64(worker)))
		var c *conn
		defer func() {
			if c != nil {
				c.close()
			}
		}()
		for i := 0; i < maxRepeats && ctx.Err() == nil; i++ {
			if c == nil {
				if c = t.connect(ctx); c == nil {
					continue
				}
			}
			status, isKept, err := c.exchange(newRequest(random, i))
			if ctx.Err() != nil {
				t.outcomes.add(stillOpen)
				return
			}
			t.outcomes.addAnswer(status, err)
			if !isKept {
				c.close()
				c = nil
			}
			if status == 0 {
				pauseFor(ctx, retryPause)
			}
		}
	})
}

// connect opens a connection of the stranger. If that fails, it waits a moment and returns nil.
func (t *turn) connect(ctx context.Context) *conn {
	c, err := dial(ctx, strangerSource, t.address)
	if err != nil {
		if ctx.Err() == nil {
			t.outcomes.add(failedConnections)
			pauseFor(ctx, retryPause)
		}
		return nil
	}
	return c
}

// stagger waits a little before the i-th of many connections, so that they do not overflow the listener's queue.
func stagger(ctx context.Context, i int) { pauseFor(ctx, time.Duration(i)*200*time.Microsecond) }

// hold sends a request over n connections and reads the answers at perSecond bytes a second, 0 for not at all, until ctx ends. It
// connects again if the service refuses or ends a connection.
func (t *turn) hold(ctx context.Context, n, perSecond int, r request) {
	runAll(n, func(worker int) {
		stagger(ctx, worker)
		for i := 0; i < maxRepeats && ctx.Err() == nil; i++ {
			if c := t.connect(ctx); c != nil {
				t.holdOnce(ctx, c, perSecond, r)
				c.close()
			}
		}
	})
}

// holdOnce holds one connection.
func (t *turn) holdOnce(ctx context.Context, c *conn, perSecond int, r request) {
	sendErr := c.send(r)
	resp, err := c.receive()
	if ctx.Err() != nil {
		t.outcomes.add(stillOpen)
		return
	}
	if err != nil || resp.StatusCode != http.StatusOK {
		t.outcomes.addAnswer(statusOf(resp), errors.Join(sendErr, err))
		pauseFor(ctx, retryPause)
		return
	}
	t.outcomes.add("200")
	switch err := readSlowly(ctx, resp.Body, perSecond); {
	case ctx.Err() != nil:
		t.outcomes.add(drain(c, resp.Body))
	case errors.Is(err, io.EOF):
		t.outcomes.add(wholeAnswer)
	default:
		t.outcomes.add(endedByService)
	}
}

// statusOf returns the status of an answer, 0 for none.
func statusOf(resp *http.Response) int {
	if resp == nil {
		return 0
	}
	return resp.StatusCode
}

// readSlowly reads at a rate until ctx ends or a read fails, and returns the error of the read: io.EOF at the end of the answer.
func readSlowly(ctx context.Context, from io.Reader, perSecond int) error {
	const step = 100 * time.Millisecond
	part, pause := perSecond/10, step
	if perSecond < 10 {
		part, pause = perSecond, time.Second
	}
	for pauseFor(ctx, pause) {
		if _, err := io.CopyN(io.Discard, from, int64(part)); err != nil {
			return err
		}
	}
	return nil
}

// drain reads the rest of a held answer for a moment after its turn, and returns the outcome of the connection. The service may have
// ended the connection long before, which a client that does not read does not notice.
func drain(c *conn, from io.Reader) string {
	c.continueFor(drainTimeout)
	switch _, err := io.Copy(io.Discard, from); {
	case err == nil:
		return wholeAnswer
	case isTimeout(err):
		return stillOpen
	default:
		return endedByService
	}
}

// slowSender says what trickle writes: prefix at once, then unit every second, unless unit is empty.
type slowSender struct {
	prefix, unit []byte
	isUnread     bool // the answers are never read
}

// trickle writes slowly over n connections until ctx ends. It connects again if the service answers or ends a connection.
func (t *turn) trickle(ctx context.Context, n int, s slowSender) {
	runAll(n, func(worker int) {
		stagger(ctx, worker)
		for i := 0; i < maxRepeats && ctx.Err() == nil; i++ {
			if c := t.connect(ctx); c != nil {
				t.trickleOnce(ctx, c, s)
				c.close()
			}
		}
	})
}

// trickleOnce writes slowly over one connection.
func (t *turn) trickleOnce(ctx context.Context, c *conn, s slowSender) {
	if s.isUnread {
		writeSlowly(ctx, c, s)
		<-ctx.Done()
		t.outcomes.add(drainConnection(c))
		return
	}
	// The answer is read while the writing continues; its arrival ends the writing.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		defer cancel()
		t.recordAnswers(c)
	}()
	writeSlowly(ctx, c, s)
	<-ctx.Done()
	c.SetDeadline(time.Unix(1, 0)) // ends recordAnswers
	<-answered
}

// drainConnection is drain for a connection that may have several answers.
func drainConnection(c *conn) string {
	if what := drain(c, c.reader); what != wholeAnswer {
		return what
	}
	return endedByService // the end of the connection was read
}

// recordAnswers counts the answer to a slow sender, and the answers 100 Continue before it. A timeout means that the turn has ended.
func (t *turn) recordAnswers(c *conn) {
	for {
		resp, err := c.receive()
		if isTimeout(err) {
			t.outcomes.add(stillOpen)
			return
		}
		t.outcomes.addAnswer(statusOf(resp), err)
		if err != nil || resp.StatusCode != http.StatusContinue {
			return
		}
	}
}

// writeSlowly writes until ctx or the connection ends.
func writeSlowly(ctx context.Context, w io.Writer, s slowSender) {
	_, err := w.Write(s.prefix)
	for err == nil && len(s.unit) > 0 && pauseFor(ctx, time.Second) {
		_, err = w.Write(s.unit)
	}
}

// rowsContent is a body of n rows of the same length, between head and tail. The rows are made while it is read.
func rowsContent(mimeType, head string, n int, row func(i int) string, tail string) content {
	length := int64(len(head)) + int64(n)*int64(len(row(0))) + int64(len(tail))
	return content{length, func() io.Reader {
		return io.MultiReader(strings.NewReader(head), &rowReader{row: row, n: n}, strings.NewReader(tail))
	}, mimeType}
}

// rowReader reads n rows, one after the other.
type rowReader struct {
	row  func(i int) string
	i, n int
	rest string // of the current row
}

// Read implements io.Reader.
func (r *rowReader) Read(p []byte) (int, error) {
	if r.rest == "" {
		if r.i == r.n {
			return 0, io.EOF
		}
		r.rest = r.row(r.i)
		r.i++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
