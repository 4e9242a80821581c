package server

import (
	"context"

	"lieudit/schemas/grant"
)

// Meter counts requests against the quotas of accounts.
type Meter interface {
	// Admit lets a request to an endpoint (its path in the route table) into the work, or says with which
	// problem it is refused. Settle must be called once when the work is done and before its answer is sent.
	Admit(ctx context.Context, g grant.Grant, endpoint string) (Settle, error)
}

// Settle tells a meter the status of the answer that is about to be sent. Its error is sent in the answer's place.
type Settle func(ctx context.Context, status int) error

// unmetered admits everything.
type unmetered struct{}

func (unmetered) Admit(context.Context, grant.Grant, string) (Settle, error) {
	return func(context.Context, int) error { return nil }, nil
}
