package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"lieudit/commands"
	"lieudit/commands/account"
	"lieudit/commands/areatoken"
	"lieudit/commands/deployment"
	"lieudit/eventstore"
	"lieudit/eventstore/clock"
	"lieudit/eventstore/sqldb"
	"lieudit/schemas/body"
	"lieudit/schemas/event"
	"lieudit/schemas/refusal"
)

const (
	// firstFormatCheckTimeout is how long a start waits for the log's format. A log that cannot be read is checked in the
	// background.
	firstFormatCheckTimeout = 3 * time.Second
	// formatCheckInterval is how often an instance looks whether a later program has raised the format.
	formatCheckInterval = 5 * time.Second
)

// checkFormat refuses a log whose format this program does not know. Where no older instance
// can run next to this one, it raises the format at once. Elsewhere an operator does (upgrades.Finish), unless the log is new
// (raiseFormatOfNewLog).
func (i *Instance) checkFormat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, firstFormatCheckTimeout)
	defer cancel()
	format, err := i.deployment.CheckFormat(ctx)
	var unknown *deployment.UnknownFormatError
	switch {
	case errors.As(err, &unknown):
		return err
	case !i.OwnsLogs: // one that cannot be read now is checked by followFormat
		return nil
	case err != nil || format >= event.HighestFormat:
		return err
	}
	isUsed, err := i.isLogUsed(ctx)
	if err != nil {
		return err
	}
	if err := i.deployment.RaiseFormat(ctx, commands.Metadata{Actor: eventstore.SystemActor, Reason: "start of a new program"}, event.HighestFormat); err != nil {
		return err
	}
	if isUsed { // no older program has ever run on a new log
		i.Log.Info("this start has raised the log's format: older versions refuse to start on this data folder from now on, and the way "+
			"back to one is a backup of before (lieudit guide upgrade)", "before", format, "format", event.HighestFormat)
	}
	return nil
}

// raiseFormatOfNewLog raises the format of a log on a server that no program has used: there is nothing to go back to. It comes
// before the first start's records. An older program that is started next to in this moment ends by itself (followFormat).
func (i *Instance) raiseFormatOfNewLog(ctx context.Context) error {
	highest := cmp.Or(i.NewLogFormat, event.HighestFormat)
	if isRaised, err := i.deployment.HasFormat(ctx, highest); err != nil || isRaised {
		return err
	}
	if isUsed, err := i.isLogUsed(ctx); err != nil || isUsed {
		return err
	}
	return i.deployment.RaiseFormat(ctx, commands.Metadata{Actor: eventstore.SystemActor, Reason: "new log"}, highest)
}

// isLogUsed reports whether a program has started on the log before: the first of all records a token.
func (i *Instance) isLogUsed(ctx context.Context) (bool, error) {
	for signal, err := range i.Core.ReadAll(ctx, eventstore.Checkpoint{}, eventstore.Filter{areatoken.Aggregate.Category, account.Aggregate.Category}) {
		if err != nil {
			return false, fmt.Errorf("beginning of the log: %w", err)
		}
		if isUsed := signal.Kind == eventstore.EventAppeared; isUsed || signal.Kind == eventstore.CaughtUp {
			return isUsed, nil
		}
	}
	return false, nil
}

// followFormat reads the log's format until ctx ends, and returns an error as soon as this program does not know it. That
// ends the instance. It happens if the log could not be read at start, or if an operator finished an upgrade just as this
// instance started.
func (i *Instance) followFormat(ctx context.Context) error {
	isFirst := true
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, formatCheckInterval) {
		isUsed := !isFirst
		var err error
		if isFirst { // before the format, which a new log has before it is used
			isUsed, err = i.isLogUsed(ctx)
		}
		format, formatErr := i.deployment.CheckFormat(ctx)
		var unknown *deployment.UnknownFormatError
		if errors.As(formatErr, &unknown) {
			return formatErr
		}
		isFound := isUsed && err == nil && formatErr == nil
		if isFirst && isFound && format < event.HighestFormat {
			i.Log.Info("an upgrade is not finished: once no older program runs, lieudit upgrade finish raises the log's format",
				"format", format, "known", event.HighestFormat)
		}
		if isFirst = isFirst && !isFound; !isFirst {
			pause = formatCheckInterval
		}
		if !clock.Sleep(ctx, pause) {
			return nil
		}
	}
}

// upgrades implements customerarea.Upgrades: it knows the log's format and which programs run.
type upgrades struct {
	deployment *deployment.Deployment
	registry   *sqldb.Registry
}

// Status says which format the log has, which one this program knows, and which instances run.
func (u upgrades) Status(ctx context.Context) (body.Upgrade, error) {
	format, err := u.deployment.CheckFormat(ctx)
	if err != nil {
		return body.Upgrade{}, err
	}
	running, err := u.registry.RunningInstances(ctx)
	shown := body.Upgrade{Format: format, KnownFormat: event.HighestFormat, Instances: make([]body.RunningInstance, len(running))}
	for i, r := range running {
		known := max(int(r.Format), event.FirstFormat) // programs that do not say it are of before there were others
		shown.Instances[i] = body.RunningInstance{ID: r.ID, Program: r.Program, KnownFormat: known, IsBlocking: known < event.HighestFormat}
	}
	return shown, err
}

// Finish raises the log's format to the highest that this program knows. It is refused while an instance runs that does not
// know that format, or was killed so recently that it is still taken for running.
func (u upgrades) Finish(ctx context.Context, meta commands.Metadata) error {
	status, err := u.Status(ctx)
	if err != nil {
		return err
	}
	if status.Format >= event.HighestFormat {
		return nil
	}
	var blocking []string
	for _, i := range status.Instances {
		if i.IsBlocking {
			blocking = append(blocking, strings.TrimSpace(fmt.Sprintf("%s %s", i.ID, i.Program)))
		}
	}
	if len(blocking) > 0 {
		return refusal.UpgradeBlocked.With(refusal.Details{Typed: strings.Join(blocking, ", ")})
	}
	return u.deployment.RaiseFormat(ctx, meta, event.HighestFormat)
}
