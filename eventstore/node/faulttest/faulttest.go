// Package faulttest serves a log by a node with faults of a real EventStoreDB that a node does not have, for tests of clients. A
// program that ships does not import it: the faults wrap a node, which does not know of them.
//
//	listener ──> silencedConn ──> node: BatchAppend <── repeatedCall
//	                                    Read ──> insideRecordLog ──> the log
package faulttest

import (
	"context"
	"errors"
	"iter"
	"net"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/node"
)

// Faults are deviations from the behaviour of a node. The zero value has none.
type Faults struct {
	// InsideRecord is the answer to a read of the whole log from a position at which no event begins.
	InsideRecord InsideRecord
	// RepeatTimeout, unless it is zero, drops an append whose first id is that of an append in flight, and answers
	// "Timeout" after this time. EventStoreDB takes 2 s.
	RepeatTimeout time.Duration
	// Silence, if not nil, stops the node's connections while it lasts.
	Silence *Silence
}

// Serve serves a log by a node with these faults. Otherwise it is node.Node.Serve.
func (f Faults) Serve(ctx context.Context, log node.Log, o node.Options, ln net.Listener) error {
	if f.InsideRecord != InsideRecordRefused {
		log = insideRecordLog{log, f.InsideRecord}
	}
	if f.RepeatTimeout > 0 {
		o.StreamInterceptor = newRepeats(f.RepeatTimeout).interceptCall
	}
	if f.Silence != nil {
		ln = silencedListener{ln, f.Silence}
	}
	return node.New(log, o).Serve(ctx, ln)
}

// InsideRecord is an answer to a read from inside a record.
type InsideRecord uint8

const (
	InsideRecordRefused InsideRecord = iota // InvalidArgument, a node's own answer
	InsideRecordFailed                      // Unknown, "Unexpected ReadAllResult: Error", as a server with its database on disk
	InsideRecordSilent                      // no answer for a minute, as a server with its database in memory
)

// insideRecordSilence is how long the real server was silent.
const insideRecordSilence = time.Minute

// insideRecordLog is a log whose Scan fails in the chosen way if it is to begin inside a record, that is at a position at
// which no event begins.
type insideRecordLog struct {
	node.Log
	insideRecord InsideRecord
}

func (l insideRecordLog) Scan(ctx context.Context, from eventstore.Position, dir eventstore.Direction) iter.Seq2[eventstore.RecordedEvent, error] {
	return func(yield func(eventstore.RecordedEvent, error) bool) {
		for e, err := range l.Log.Scan(ctx, from, dir) {
			var diverged *eventstore.DivergedError
			if errors.As(err, &diverged) {
				err = l.insideRecordError(ctx)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// insideRecordError is the error of a real server, after its silence if that is the fault.
func (l insideRecordLog) insideRecordError(ctx context.Context) error {
	if l.insideRecord == InsideRecordSilent && !clock.Sleep(ctx, insideRecordSilence) {
		return ctx.Err()
	}
	return status.Error(codes.Unknown, "Unexpected ReadAllResult: Error")
}
