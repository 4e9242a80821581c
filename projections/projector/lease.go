package projector

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"lieudit/eventstore"
	"lieudit/eventstore/feed"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/table"
)

const (
	leaseDuration = 1500 * time.Millisecond // a dead owner is replaced after that
	renewInterval = leaseDuration / 4
	claimInterval = leaseDuration / 6 // how often a follower asks for the lease
	claimTimeout  = 10 * time.Second
)

// errFenced: another instance fills the copy now, or has moved its checkpoint.
var errFenced = errors.New("another instance fills this copy now")

// lease is one instance's right to fill one copy. All times are those of the database's clock.
type lease struct {
	db             *sqldb.DB
	owner          string
	isOnlyInstance bool // no other instance can be alive
}

// claim asks for the lease and gives the checkpoint, held by this instance or by another.
func (l lease) claim(ctx context.Context) (table.Checkpoint, error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	// A lease longer than any is from before the clock was set back.
	_, err := l.db.Exec(ctx, "update checkpoint set owner = ?, until = "+l.db.Now()+" + ? where ? or owner = '' or owner = ? or until not between "+
		l.db.Now()+" and "+l.db.Now()+" + ?", l.owner, leaseDuration.Microseconds(), l.isOnlyInstance, l.owner, leaseDuration.Microseconds())
	if err != nil {
		return table.Checkpoint{}, err
	}
	return l.readCheckpoint(ctx)
}

func (l lease) readCheckpoint(ctx context.Context) (table.Checkpoint, error) {
	rows, err := sqldb.Select(ctx, l.db, table.Checkpoints, "")
	if err == nil && len(rows) != 1 {
		err = errors.New("the copy has no checkpoint")
	}
	if err != nil {
		return table.Checkpoint{}, err
	}
	return rows[0], nil
}

// renew keeps the lease and says whether it certainly is held.
func (l lease) renew(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, leaseDuration)
	defer cancel()
	n, err := l.db.Exec(ctx, "update checkpoint set until = "+l.db.Now()+" + ? where owner = ?", leaseDuration.Microseconds(), l.owner)
	return err == nil && n == 1
}

// release lets another instance try at once, and leaves the reason why this one could not go on.
func (l lease) release(ctx context.Context, reason string) error {
	_, err := l.db.Exec(ctx, "update checkpoint set owner = '', until = "+l.db.Now()+", reason = ? where owner = ?", reason, l.owner)
	return err
}

// advanceCheckpoint moves the checkpoint over a batch in the transaction of its rows; it fails when the lease or the place is not
// what the batch was read for.
func (l lease) advanceCheckpoint(ctx context.Context, tx *sqldb.Tx, b feed.Batch) error {
	recorded := table.Instant(0)
	if n := len(b.Events); n > 0 {
		recorded = table.InstantOf(b.Events[n-1].Time)
	}
	n, err := tx.Exec(ctx, "update checkpoint set log = ?, position = ?, event = ?, recorded = case when cast(? as bigint) = 0 then recorded else ? end, reason = '', until = "+
		l.db.Now()+" + ? where position = ? and owner = ?",
		b.To.Log.String(), int64(b.To.Position), b.To.Event.String(), int64(recorded), int64(recorded), leaseDuration.Microseconds(), int64(b.From.Position), l.owner)
	if err == nil && n != 1 {
		err = errFenced
	}
	return err
}

// lockCheckpoint keeps the checkpoint as it is until a transaction ends; it fails when the lease is not this instance's any more.
func (l lease) lockCheckpoint(ctx context.Context, tx *sqldb.Tx) error {
	n, err := tx.Exec(ctx, "update checkpoint set until = "+l.db.Now()+" + ? where owner = ?", leaseDuration.Microseconds(), l.owner)
	if err == nil && n != 1 {
		err = errFenced
	}
	return err
}

// checkpointOf is where a copy goes on.
func checkpointOf(c table.Checkpoint) (eventstore.Checkpoint, error) {
	if c.Position == 0 && c.Log == "" {
		return eventstore.Checkpoint{}, nil
	}
	log, err := uuid.Parse(c.Log)
	if err != nil {
		return eventstore.Checkpoint{}, err
	}
	id, err := uuid.Parse(c.Event)
	return eventstore.Checkpoint{Log: log, Position: eventstore.Position(c.Position), Event: id}, err
}
