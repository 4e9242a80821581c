package customers

import (
	"context"
	"net/http"
)

// Surface is one of the two interfaces of an instance.
type Surface int

const (
	API  Surface = iota // /services/v1
	Area                // /customer-area/v1
)

// Request is a request of a client.
type Request struct {
	Method, Path string // the path with its query, from the root
	Header       http.Header
	Body         []byte
}

// Answer is what a client gets. Without a Status it got no whole answer: whether the request had an effect is unknown where IsSent.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	IsSent bool // the request reached an instance
}

// World is where customers act: some instances of one service.
type World interface {
	// Call sends a request to an instance and returns its answer, or one without a Status when it died or took too long.
	Call(ctx context.Context, instance int, s Surface, r Request) Answer
	// Instances is how many there are.
	Instances() int
	// OperatorToken is the first operator's token; false while there is none yet.
	OperatorToken() (string, bool)
	// IsDisturbed says whether something fails, or did so a moment ago: then answers of 5xx are to be expected.
	IsDisturbed() bool
	// Report notes that a rule is broken.
	Report(rule Rule, format string, args ...any)
}
