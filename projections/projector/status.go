package projector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lieudit/eventstore"
	"lieudit/schemas/table"
)

// Status is how one copy of a read model is doing.
type Status struct {
	Model    string
	Version  int64
	Copy     string
	State    table.State
	Answers  bool // this instance answers from it
	Position eventstore.Position
	Last     time.Time // when the last event in it was recorded, zero when it holds none
	Behind   int       // events of the log it does not hold yet, counted up to MaxBehind; -1 when that cannot be known
	Owner    string    // the instance that fills it, "" for none
	Reason   string    // why it cannot go on, "" when it can
}

// MaxBehind is as far as Behind is counted.
const MaxBehind = 10_000

// Status tells about all copies there are, also those of other versions and of models this binary does not know.
func (p *Projector) Status(ctx context.Context) ([]Status, error) {
	copies, err := p.shelf.Copies(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Status, len(copies))
	for i, c := range copies {
		all[i] = p.status(ctx, c)
	}
	return all, nil
}

func (p *Projector) status(ctx context.Context, c table.Copy) Status {
	s := Status{Model: c.Model, Version: c.Version, Copy: c.Name, State: c.State, Behind: -1}
	at, mark, err := p.checkpoint(ctx, c)
	if err != nil {
		s.Reason = err.Error()
		return s
	}
	s.Position, s.Last, s.Owner, s.Reason = mark.Position, at.Recorded.Time(), at.Owner, at.Reason
	m, err := p.model(c.Model)
	if err != nil {
		return s
	}
	s.Answers = c.Of(m.Model) && c.State == table.Serving
	if s.Behind, err = p.behind(ctx, mark, m); err != nil && s.Reason == "" {
		s.Reason = err.Error()
	}
	return s
}

func (p *Projector) checkpoint(ctx context.Context, c table.Copy) (at table.Checkpoint, mark eventstore.Mark, err error) {
	db, release, err := p.shelf.Use(ctx, c)
	if err != nil {
		return at, mark, err
	}
	defer release()
	if at, err = (lease{db: db}).checkpoint(ctx); err == nil {
		mark, err = markOf(at)
	}
	return at, mark, err
}

// behind counts the events after a mark.
func (p *Projector) behind(ctx context.Context, mark eventstore.Mark, m Model) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	n := 0
	for s, err := range p.storeOf(m).ReadAll(ctx, mark, m.Categories) {
		if err != nil {
			return -1, err
		}
		if s.Kind == eventstore.Event {
			n++
		}
		if n == MaxBehind {
			break
		}
	}
	return n, nil
}

// readyBehind is how far behind a read model may be and still be called ready.
const readyBehind = 500

// Ready is nil when every model has a copy that answers, goes on, and has all but caught up; else it says what is missing.
func (p *Projector) Ready(ctx context.Context) error {
	all, err := p.Status(ctx)
	if err != nil {
		return err
	}
	answers := map[string]bool{}
	for _, s := range all {
		if !s.Answers {
			continue
		}
		answers[s.Model] = true
		switch {
		case s.Reason != "":
			err = errors.Join(err, fmt.Errorf("%s: %s", s.Copy, s.Reason))
		case s.Behind > readyBehind:
			err = errors.Join(err, fmt.Errorf("%s: %d events behind", s.Copy, s.Behind))
		}
	}
	for _, m := range p.models {
		if !answers[m.Name] {
			err = errors.Join(err, fmt.Errorf("%s: %w", m.Name, table.ErrNone))
		}
	}
	return err
}

// UnreadableAccounts are accounts that copies have stopped because a personal field did not open: the first ones after
// an account in the order of their ids, at most limit.
func (p *Projector) UnreadableAccounts(ctx context.Context, after string, limit int) (all []string, err error) {
	err = p.eachCopy(ctx, func(_ table.Copy, db *table.DB) error {
		rows, err := table.Select(ctx, db, table.AccountStatuses, "where kind = ? and account > ? order by account limit ?", table.AccountUnreadable, after, limit)
		for _, s := range rows {
			all = append(all, s.Account)
		}
		return err
	})
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(limit, len(all))], err
}

// Incidents is nil when no account is stopped and no empty commit was passed over; else it names them. It is no reason not
// to be ready: the other accounts are served.
func (p *Projector) Incidents(ctx context.Context) error {
	all, err := p.StoppedAccounts(ctx)
	if err != nil {
		return err
	}
	var texts []string
	copies := map[string][]string{} // by text
	for _, s := range all {
		for _, text := range s.texts() {
			if copies[text] == nil {
				texts = append(texts, text)
			}
			copies[text] = append(copies[text], s.Copy)
		}
	}
	for _, text := range texts {
		err = errors.Join(err, fmt.Errorf("%s: %s", strings.Join(copies[text], ", "), text))
	}
	return err
}

// texts are what is to be said of the account.
func (s StoppedAccount) texts() (all []string) {
	if s.Stopped() {
		all = append(all, (&table.StoppedError{AccountStatus: s.AccountStatus}).Error())
	}
	if s.Empty != 0 {
		all = append(all, fmt.Sprintf("account %s: a commit without a sync id at position %d changed nothing and was passed over", s.Account, s.Empty))
	}
	return all
}
