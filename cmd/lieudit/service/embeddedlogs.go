package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"lieudit/cmd/lieudit/instance"
	"lieudit/cmd/lieudit/metrics"
	"lieudit/commands"
	"lieudit/commands/deployment"
	"lieudit/eventstore"
	"lieudit/eventstore/journal"
)

// The two journals of a data folder belong together: the core log names its usage log. If a folder has lost one of them, an
// empty one must not replace it: every key would be unknown, or every account's requests would be counted from zero.

// LostCoreLogError means that the core log is missing or empty although the data folder holds what was made from it.
type LostCoreLogError struct {
	Remains string // a file or folder of the data folder
	IsEmpty bool   // the log exists and holds no events
}

func (e *LostCoreLogError) Error() string {
	what := "is missing"
	if e.IsEmpty {
		what = "holds no event"
	}
	return fmt.Sprintf("the event log in %s %s, but the data folder was in use: %s is there. Accounts and keys are in that log: put %[1]s back "+
		"from a backup, give --eventstore if the log is on a server, or begin anew in an empty data folder", coreLogFolder, what, e.Remains)
}

// LostUsageLogError means that the usage log is missing, or is an empty one that the core log does not name.
type LostUsageLogError struct{ Bound uuid.UUID }

func (e *LostUsageLogError) Error() string {
	return fmt.Sprintf("the usage log %s is missing in %s: requests would be counted from zero. Put the folder back from a backup, "+
		"or start once with --accept-lost-usage: all that accounts have used so far then counts as nothing", e.Bound, usageLogFolder)
}

// OtherUsageLogError means that the usage log holds requests and is not the one that the core log names. Requests that another service
// counted must not be counted here, so no flag accepts it.
type OtherUsageLogError struct{ Bound, Found uuid.UUID }

func (e *OtherUsageLogError) Error() string {
	return fmt.Sprintf("%s is the log %s, and %s counts requests in the log %s: one of the two is another service's. Put the right folder back. "+
		"Only if the usage log %[4]s is lost for good: move %[1]s away and start once with --accept-lost-usage, and all that accounts have "+
		"used so far then counts as nothing", usageLogFolder, e.Found, coreLogFolder, e.Bound)
}

// openEmbeddedLogs opens the two journals of the data folder, and binds the usage log to the core log at the first start. It
// makes a journal only if none was lost; otherwise the error is a *LostCoreLogError, a *LostUsageLogError or an
// *OtherUsageLogError.
func openEmbeddedLogs(ctx context.Context, c Config, calls *metrics.Calls) (_ logs, err error) {
	if err := checkCoreLogExists(c.Data); err != nil {
		return logs{}, err
	}
	core, err := openJournal(c, coreLogFolder, calls.ObserveSync("core"))
	if err != nil {
		return logs{}, err
	}
	opened := logs{core: core, coreTimeAtOpen: core.TimeAtOpen}
	defer func() {
		if err != nil {
			opened.close() // the error is dropped: at most the binding was written, and that is durable
		}
	}()
	b := usageBinding{deployment.New(core, eventstore.NewCodec(nil), Version()), c.AcceptLostUsage, c.Log}
	bound, err := b.checkExists(ctx, filepath.Join(c.Data, usageLogFolder))
	if err != nil {
		return logs{}, err
	}
	usage, err := openJournal(c, usageLogFolder, calls.ObserveSync("usage"))
	if err != nil {
		return logs{}, err
	}
	opened.usage, opened.usageTimeAtOpen = usage, usage.TimeAtOpen
	if core.LastCheckpoint().Position == 0 && usage.LastCheckpoint().Position > 0 {
		return logs{}, &LostCoreLogError{Remains: usageLogFolder, IsEmpty: true}
	}
	return opened, b.bind(ctx, bound, usage)
}

// openJournal opens and locks one of the journals of the data folder. The error of a damaged one says what can be done.
// observeSync receives how long each sync took; it may be nil.
func openJournal(c Config, folder string, observeSync func(time.Duration)) (*journal.Journal, error) {
	j, err := journal.Open(filepath.Join(c.Data, folder), journal.Options{Clock: c.Now, Logger: c.Log, ObserveSync: observeSync})
	if _, isDamaged := errors.AsType[*eventstore.CorruptError](err); isDamaged {
		return nil, fmt.Errorf("%w\nrestore a backup, or save what is whole:\n  lieudit log salvage --data %s --out %s",
			err, c.Data, filepath.Join(c.Data, "log-salvaged"))
	}
	return j, err
}

// checkCoreLogExists returns a *LostCoreLogError if the data folder has no core log but holds a file that only a service
// with a log makes. Vintages and road networks are not such files: an import needs no service.
func checkCoreLogExists(data string) error {
	if exists, err := journal.Exists(filepath.Join(data, coreLogFolder)); err != nil || exists {
		return err
	}
	for _, name := range []string{usageLogFolder, vaultFile, instance.KeyRingFile, instance.OperatorTokenFile, readModelsFolder, instance.FoldsFolder} {
		isPresent, err := isInUse(filepath.Join(data, name))
		if err != nil {
			return err
		}
		if isPresent {
			return &LostCoreLogError{Remains: name}
		}
	}
	return nil
}

// isInUse reports whether a path is a file, or a folder that is not empty.
func isInUse(path string) (bool, error) {
	found, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !found.IsDir() {
		return err == nil, err
	}
	entries, err := os.ReadDir(path)
	return len(entries) > 0, err
}

// usageBinding makes sure that the usage log is the one that the core log names.
type usageBinding struct {
	deployment *deployment.Deployment
	acceptLost bool
	log        *slog.Logger
}

// checkExists returns the usage log that the core log names, uuid.Nil for none. It returns a *LostUsageLogError if that
// log is missing in the folder and its loss is not accepted, and a *deployment.UnknownFormatError for a later program's log.
func (b usageBinding) checkExists(ctx context.Context, folder string) (bound uuid.UUID, err error) {
	if _, err := b.deployment.CheckFormat(ctx); err != nil { // checked first: a later program may have written events that State cannot fold
		return uuid.Nil, err
	}
	current, err := b.deployment.State(ctx)
	if err != nil {
		return uuid.Nil, fmt.Errorf("the usage log that the core log names: %w", err)
	}
	if current.UsageLog == uuid.Nil || b.acceptLost {
		return current.UsageLog, nil
	}
	exists, err := journal.Exists(folder)
	if err == nil && !exists {
		err = &LostUsageLogError{Bound: current.UsageLog}
	}
	return current.UsageLog, err
}

// bindMetadata names the author of a binding for the audit.
var bindMetadata = commands.Metadata{Actor: eventstore.SystemActor, Reason: "start"}

// bind records a usage log on the core log if that names none yet, or if the loss of the named one is accepted and this one is
// empty. For any other log the error is a *LostUsageLogError if the log is empty, otherwise an *OtherUsageLogError.
func (b usageBinding) bind(ctx context.Context, bound uuid.UUID, usage *journal.Journal) error {
	found, err := usage.Identity(ctx)
	if err != nil || found == bound {
		return err
	}
	isEmpty := usage.LastCheckpoint().Position == 0
	switch {
	case bound == uuid.Nil:
		return b.deployment.BindUsageLog(ctx, bindMetadata, found)
	case !isEmpty:
		return &OtherUsageLogError{Bound: bound, Found: found}
	case !b.acceptLost:
		return &LostUsageLogError{Bound: bound}
	}
	b.log.Warn("the usage log is lost, as was accepted: requests are counted from zero", "lost", bound, "log", found)
	return b.deployment.ReplaceUsageLog(ctx, bindMetadata, found)
}
