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

// statusError is an answer that refuses: a status, and the trailers by which clients tell EventStoreDB's errors apart.
type statusError struct {
	code    codes.Code
	text    string
	trailer metadata.MD
}

func (f *statusError) Error() string              { return f.text }
func (f *statusError) GRPCStatus() *status.Status { return status.New(f.code, f.text) }

func invalidArgument(format string, args ...any) *statusError {
	return &statusError{code: codes.InvalidArgument, text: fmt.Sprintf(format, args...)}
}

func streamDeleted(stream string) *statusError {
	return &statusError{codes.FailedPrecondition, fmt.Sprintf("Event stream '%s' is deleted.", printableHeader(stream)),
		metadata.Pairs("exception", "stream-deleted", "stream-name", printableHeader(stream))}
}

func appendTooLarge() *statusError {
	size := strconv.Itoa(eventstore.MaxAppendBytes)
	return &statusError{codes.InvalidArgument, "Maximum Append Size of " + size + " Exceeded.",
		metadata.Pairs("exception", "maximum-append-size-exceeded", "maximum-append-size", size)}
}

func missing(property string) *statusError {
	return &statusError{codes.InvalidArgument, fmt.Sprintf("Required Metadata Property '%s' is missing", property),
		metadata.Pairs("exception", "missing-required-metadata-property", "required-metadata-properties", "type,content-type")}
}

func wrongExpectedVersion(operation string, c *eventstore.ConflictError) *statusError {
	expected, actual := strconv.FormatInt(int64(c.Expected), 10), strconv.FormatInt(int64(c.Current), 10)
	text := fmt.Sprintf("%s failed due to WrongExpectedVersion. Stream: %s, Expected version: %s, Actual version: %s",
		operation, printableHeader(c.Stream), expected, actual)
	return &statusError{codes.FailedPrecondition, text, metadata.Pairs("exception", "wrong-expected-version",
		"stream-name", printableHeader(c.Stream), "expected-version", expected, "actual-version", actual)}
}

func invalidTransaction() *statusError {
	return &statusError{codes.InvalidArgument, "Invalid Transaction", metadata.Pairs("exception", "invalid-transaction")}
}

// unhandledException is what EventStoreDB says where it does not look at what it is asked.
func unhandledException() *statusError {
	return &statusError{code: codes.Unknown, text: "Exception was thrown by handler."}
}

// notReady says that nothing was done.
func notReady() *statusError {
	return &statusError{code: codes.Unavailable, text: "Server Is Not Ready"}
}

// printableHeader keeps a stream name inside what a header may hold.
func printableHeader(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
}

// toStatusError turns any error into the answer EventStoreDB gives. Aborted is its word for an append whose outcome is
// unknown; Unavailable is said only when certainly nothing was added.
func toStatusError(err error) error {
	var f *statusError
	var diverged *eventstore.DivergedError
	switch {
	case err == nil || errors.As(err, &f):
		return err
	case errors.Is(err, eventstore.ErrUnknown):
		return &statusError{code: codes.Aborted, text: "Operation timed out: " + err.Error()}
	case errors.Is(err, eventstore.ErrUnavailable), errors.Is(err, eventstore.ErrClosed):
		return notReady()
	case errors.Is(err, eventstore.ErrTooLarge):
		return appendTooLarge()
	case errors.Is(err, eventstore.ErrIDReused):
		return invalidTransaction()
	case errors.As(err, &diverged):
		return invalidArgument("Trying to read from an invalid position.")
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	if s := status.FromContextError(err); s.Code() != codes.Unknown {
		return s.Err()
	}
	return &statusError{code: codes.Internal, text: err.Error()}
}

func (n *Node) interceptUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, call grpc.UnaryHandler) (resp any, err error) {
	err = n.handleCall(info.FullMethod, func() error { resp, err = call(ctx, req); return err })
	var f *statusError
	if errors.As(err, &f) && len(f.trailer) > 0 {
		if e := grpc.SetTrailer(ctx, f.trailer); e != nil {
			return nil, e
		}
	}
	return resp, err
}

func (n *Node) interceptStream(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, call grpc.StreamHandler) error {
	err := n.handleCall(info.FullMethod, func() error { return call(srv, s) })
	var f *statusError
	if errors.As(err, &f) && len(f.trailer) > 0 {
		s.SetTrailer(f.trailer)
	}
	return err
}

// handleCall runs a call and names its error.
func (n *Node) handleCall(method string, call func() error) error {
	return toStatusError(n.recoverPanics(method, call))
}

// recoverPanics turns a crash into an error that leaves the other calls alone.
func (n *Node) recoverPanics(method string, call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			n.options.Logger.Error("call crashed", "method", method, "panic", p, "stack", string(debug.Stack()))
			err = &statusError{code: codes.Internal, text: "internal error"}
		}
	}()
	return call()
}
