package usage

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"lieudit/commands"
	"lieudit/eventstore"
	"lieudit/schemas/event"
	"lieudit/schemas/ledger"
	"lieudit/schemas/plan"
)

// ErrNoPeriod: nothing was ever counted for the contract in a period of that name.
var ErrNoPeriod = errors.New("no such period")

// Refusal is a rule that a correction breaks, as the caller is told it: a code for programs and French for people.
type Refusal struct{ code, text string }

func (r *Refusal) Error() string { return r.text }

// Code names the rule.
func (r *Refusal) Code() string { return r.code }

// The rules of corrections.
var (
	ErrNotClosed = &Refusal{"periode_non_close", "Cette période n'est pas close : seule une période close se corrige."}
	ErrOtherDay  = &Refusal{"jour_hors_periode", "Ce jour n'est pas dans la période."}
	ErrNotInIt   = &Refusal{"compte_hors_contrat", "Ce compte n'a rien consommé sur ce contrat pendant la période."}
	ErrBelowZero = &Refusal{"correction_excessive", "La correction laisserait moins de zéro requête."}
	ErrNothing   = &Refusal{"correction_nulle", "Une correction ajoute ou retire au moins une requête."}
)

// Adjustment corrects a line of a closed period of a contract.
type Adjustment struct {
	Contract string
	First    plan.Date // the period
	Line     ledger.Line
	Requests int64 // more, or less; not 0
}

// Adjusted is what a correction came to.
type Adjusted struct {
	Requests int64 // what counts on the line from then on
	Position eventstore.Position
}

// Adjust corrects a closed period, for good; the envelope tells by whom and why. What the period was closed with stays.
func (l *Ledger) Adjust(ctx context.Context, in commands.Intent, a Adjustment) (Adjusted, error) {
	stream, command := ledger.Stream(a.Contract, a.First), uuid.New()
	for attempt := byte(0); ; attempt++ {
		f, last, err := l.Fold(ctx, stream)
		if err == nil {
			err = a.allowed(f)
		}
		if err != nil {
			return Adjusted{}, err
		}
		proposed, err := l.codec.Encode(ctx, stream, uuid.NewSHA1(command, []byte{attempt}), in.Metadata(command), []event.Event{event.UsageAdjusted{
			Day: a.Line.Day, Account: a.Line.Account, Key: a.Line.Key, Endpoint: a.Line.Endpoint, Requests: a.Requests,
		}})
		if err != nil {
			return Adjusted{}, err
		}
		done, err := l.append(ctx, stream, last, proposed)
		if err == nil {
			return Adjusted{f.Lines[a.Line] + a.Requests, done.Position}, nil
		}
		if !errors.Is(err, eventstore.ErrConflict) {
			return Adjusted{}, fmt.Errorf("adjust %s: %w", stream, err)
		}
	}
}

// allowed says which rule a correction of a period breaks, if any.
func (a Adjustment) allowed(f *ledger.Folding) error {
	_, _, known := f.Cap(a.Line.Account)
	day := a.Line.Day.Start()
	switch {
	case !f.Opened() && !f.Closed():
		return ErrNoPeriod
	case !f.Closed():
		return ErrNotClosed
	case day.Before(f.Period.Start()) || !day.Before(f.Period.End()):
		return ErrOtherDay
	case !known:
		return ErrNotInIt
	case f.Lines[a.Line]+a.Requests < 0:
		return ErrBelowZero
	case a.Requests == 0:
		return ErrNothing
	}
	return nil
}
