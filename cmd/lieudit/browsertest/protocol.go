package browsertest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// message is one message of the DevTools protocol in either direction: a call and its answer have an ID, an event has none.
type message struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"` // the tab; empty for the browser as a whole
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *protocolError  `json:"error,omitempty"`
}

// protocolError is Chromium's refusal of a call.
type protocolError struct {
	Message string `json:"message"`
	Data    string `json:"data"`
}

func (e *protocolError) Error() string { return e.Message + " " + e.Data }

// object is an object in JSON.
type object = map[string]any

// The errors of calls once the browser has closed its pipe, and once a tab is closed or has crashed.
var (
	errEnded = errors.New("the browser has ended")
	errGone  = &protocolError{Message: "the tab is gone"}
)

// connection carries calls to Chromium and answers and events back, all of them JSON with a NUL at the end. It is safe for
// concurrent use.
type connection struct {
	in  *bufio.Reader
	out io.Writer

	writing sync.Mutex
	mu      sync.Mutex
	lastID  int
	calls   map[int]pendingCall
	events  map[string]func(message) // by session
	gone    map[string]bool          // sessions of tabs that answer no more
	ended   chan struct{}            // closed after the last message
}

// pendingCall is a call that waits for its answer.
type pendingCall struct {
	session string
	answer  chan message // holds one
}

func newConnection(in io.Reader, out io.Writer) *connection {
	return &connection{
		in: bufio.NewReader(in), out: out, ended: make(chan struct{}),
		calls: map[int]pendingCall{}, events: map[string]func(message){}, gone: map[string]bool{},
	}
}

// readMessages passes messages on until Chromium closes the pipe. Events of one session arrive in order, and before the
// answers that Chromium sends after them.
func (c *connection) readMessages() {
	defer close(c.ended)
	for {
		text, err := c.in.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			return
		}
		c.mu.Lock()
		call, isAnswer := c.calls[m.ID]
		handle := c.events[m.SessionID]
		delete(c.calls, m.ID)
		c.mu.Unlock()
		switch {
		case isAnswer:
			call.answer <- m
		case m.Method == "Inspector.targetCrashed":
			c.abandonSession(m.SessionID)
		case m.Method == "Target.detachedFromTarget":
			var detached struct{ SessionID string }
			json.Unmarshal(m.Params, &detached)
			c.abandonSession(detached.SessionID)
		case handle != nil && m.Method != "":
			handle(m)
		}
	}
}

// abandonSession answers all calls of a tab that Chromium will not answer.
func (c *connection) abandonSession(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone[session] = true
	for id, call := range c.calls {
		if call.session == session {
			call.answer <- message{Error: errGone}
			delete(c.calls, id)
		}
	}
}

// handleEvents calls handle with each event of a session, until it is called with nil. handle must not wait for Chromium.
func (c *connection) handleEvents(session string, handle func(message)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if handle == nil {
		delete(c.events, session)
	} else {
		c.events[session] = handle
	}
}

// send sends a call. The answer will arrive in the channel.
func (c *connection) send(session, method string, params any) (<-chan message, error) {
	encoded, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	answer := make(chan message, 1)
	c.mu.Lock()
	isGone := c.gone[session]
	c.lastID++
	id := c.lastID
	if !isGone {
		c.calls[id] = pendingCall{session, answer}
	}
	c.mu.Unlock()
	if isGone {
		return nil, fmt.Errorf("%s: %w", method, errGone)
	}
	text, err := json.Marshal(message{ID: id, SessionID: session, Method: method, Params: encoded})
	if err != nil {
		return nil, err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if _, err := c.out.Write(append(text, 0)); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", method, errEnded, err)
	}
	return answer, nil
}

// call sends a call, waits for the answer and decodes it into result, unless that is nil.
func (c *connection) call(ctx context.Context, session, method string, params, result any) error {
	if params == nil {
		params = object{}
	}
	answer, err := c.send(session, method, params)
	if err != nil {
		return err
	}
	var m message
	select {
	case m = <-answer:
	case <-c.ended:
		return fmt.Errorf("%s: %w", method, errEnded)
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
	if m.Error != nil {
		return fmt.Errorf("%s: %w", method, m.Error)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(m.Result, result); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}
