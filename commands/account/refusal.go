package account

import (
	"errors"
	"fmt"

	"lieudit/commands"
	"lieudit/schemas/event"
	"lieudit/schemas/refusal"
)

// These errors mean that the object of a command does not exist. Both are refusal.NotFound for the client.
var (
	ErrUnknownAccount = fmt.Errorf("unknown account: %w", refusal.NotFound)
	ErrUnknownKey     = fmt.Errorf("unknown key: %w", refusal.NotFound)
)

// QuotaError reports that the requested quota is larger than the plan or the agency allows. The client gets the answer of a
// validation error. Both numbers are requests a month.
type QuotaError struct{ Quota, Max int64 }

func (e *QuotaError) Error() string { return fmt.Sprintf("quota %d is above %d", e.Quota, e.Max) }

// refuseAndRecord is the decision to only record who tried what, and why it was refused.
func refuseAndRecord(action string, err error) commands.Result {
	return commands.RefuseAndRecord(err, event.AccountActionRefused{Action: action, Code: recordedCode(err)})
}

// recordedCode is what the event records of a refusal. An error without a code is recorded as "refuse".
func recordedCode(err error) string {
	if _, ok := errors.AsType[*QuotaError](err); ok {
		return "quota_trop_grand"
	}
	if r, ok := refusal.FromError(err); ok && r.Code != refusal.NotFound {
		return string(r.Code)
	}
	return "refuse"
}
