package node

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"lieudit/eventstore"
)

// failure is an answer that refuses: a status, and the trailers by which clients tell EventStoreDB's errors apart.
type failure struct {
	code    codes.Code
	text    string
	trailer metadata.MD
}

func (f *failure) Error() string              { return f.text }
func (f *failure) GRPCStatus() *status.Status { return status.New(f.code, f.text) }

func invalid(format string, args ...any) *failure {
	return &failure{code: codes.InvalidArgument, text: fmt.Sprintf(format, args...)}
}

func deleted(stream string) *failure {
	return &failure{codes.FailedPrecondition, fmt.Sprintf("Event stream '%s' is deleted.", printable(stream)),
		metadata.Pairs("exception", "stream-deleted", "stream-name", printable(stream))}
}

func tooLarge() *failure {
	size := strconv.Itoa(eventstore.MaxAppend)
	return &failure{codes.InvalidArgument, "Maximum Append Size of " + size + " Exceeded.",
		metadata.Pairs("exception", "maximum-append-size-exceeded", "maximum-append-size", size)}
}

func missing(property string) *failure {
	return &failure{codes.InvalidArgument, fmt.Sprintf("Required Metadata Property '%s' is missing", property),
		metadata.Pairs("exception", "missing-required-metadata-property", "required-metadata-properties", "type,content-type")}
}

func wrongVersion(operation string, c *eventstore.ConflictError) *failure {
	expected, actual := strconv.FormatInt(int64(c.Expected), 10), strconv.FormatInt(int64(c.Current), 10)
	text := fmt.Sprintf("%s failed due to WrongExpectedVersion. Stream: %s, Expected version: %s, Actual version: %s",
		operation, printable(c.Stream), expected, actual)
	return &failure{codes.FailedPrecondition, text, metadata.Pairs("exception", "wrong-expected-version",
		"stream-name", printable(c.Stream), "expected-version", expected, "actual-version", actual)}
}

func invalidTransaction() *failure {
	return &failure{codes.InvalidArgument, "Invalid Transaction", metadata.Pairs("exception", "invalid-transaction")}
}

// unhandled is what EventStoreDB says where it does not look at what it is asked.
func unhandled() *failure {
	return &failure{code: codes.Unknown, text: "Exception was thrown by handler."}
}

// notReady says that nothing was done.
func notReady() *failure { return &failure{code: codes.Unavailable, text: "Server Is Not Ready"} }

// printable keeps a stream name inside what a header may hold.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// failed turns any error into the answer EventStoreDB gives. Aborted is its word for an append whose outcome is
// unknown; Unavailable is said only when certainly nothing was added.
func failed(err error) error {
	var f *failure
	var diverged *eventstore.DivergedError
	switch {
	case err == nil || errors.As(err, &f):
		return err
	case errors.Is(err, eventstore.ErrUnknown):
		return &failure{code: codes.Aborted, text: "Operation timed out: " + err.Error()}
	case errors.Is(err, eventstore.ErrUnavailable), errors.Is(err, eventstore.ErrClosed):
		return notReady()
	case errors.Is(err, eventstore.ErrTooLarge):
		return tooLarge()
	case errors.Is(err, eventstore.ErrMismatch):
		return invalidTransaction()
	case errors.As(err, &diverged):
		return invalid("Trying to read from an invalid position.")
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if s := status.FromContextError(err); s.Code() != codes.Unknown {
		return s.Err()
	}
	return &failure{code: codes.Internal, text: err.Error()}
}

func (n *Node) guardUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, call grpc.UnaryHandler) (resp any, err error) {
	err = n.guard(info.FullMethod, func() error { resp, err = call(ctx, req); return err })
	var f *failure
	if errors.As(err, &f) && len(f.trailer) > 0 {
		if e := grpc.SetTrailer(ctx, f.trailer); e != nil {
			return nil, e
		}
	}
	return resp, err
}

func (n *Node) guardStream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, call grpc.StreamHandler) error {
	err := n.guard(info.FullMethod, func() error { return call(srv, s) })
	var f *failure
	if errors.As(err, &f) && len(f.trailer) > 0 {
		s.SetTrailer(f.trailer)
	}
	return err
}

// guard runs a call and names its error.
func (n *Node) guard(method string, call func() error) error { return failed(n.safely(method, call)) }

// safely turns a crash into an error that leaves the other calls alone.
func (n *Node) safely(method string, call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			n.o.Logger.Error("call crashed", "method", method, "panic", p, "stack", string(debug.Stack()))
			err = &failure{code: codes.Internal, text: "internal error"}
		}
	}()
	return call()
}
