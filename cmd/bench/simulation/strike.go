package simulation

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"lieudit/cmd/bench/simulation/customers"
	"lieudit/cmd/bench/simulation/faults"
	"lieudit/eventstore"
)

// disturbance is how long the effects of a fault, or of the start of an instance, may show: a supervisor's pause, the time until a key ring is
// fresh, a lease that has to expire, and the longest wait of a request.
const disturbance = 20 * time.Second

// IsDisturbed implements customers.World.
func (w *World) IsDisturbed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.striking > 0 || time.Now().Before(w.disturbedUntil)
}

// beginDisturbance marks the world as disturbed until some time after the returned function is called.
func (w *World) beginDisturbance() (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.striking++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.striking--
		w.disturbedUntil = time.Now().Add(disturbance)
	}
}

// strike makes a fault happen, and returns when it is over.
func (w *World) strike(f faults.Fault) {
	defer w.beginDisturbance()()
	w.log.Info("fault", "kind", f.Kind, "part", f.Part, "on", f.Instance, "for", f.For)
	for _, n := range w.nodesWithoutUsage(f) {
		defer n.outage.begin()()
	}
	strike := w.strikeNodes
	if own := w.worldStrikes()[f.Kind]; own != nil {
		strike = own
		for _, n := range w.struckNodes(f) {
			n.before.noteStrike(f)
		}
	}
	if err := strike(f); err != nil {
		w.Report(customers.EndsInTime, "%s: %v", f.Kind, err)
	}
}

// nodesWithoutUsage returns the nodes whose use of their usage log a fault impairs.
func (w *World) nodesWithoutUsage(f faults.Fault) []*node {
	switch {
	case f.Part == faults.UsageServer:
		return w.nodes
	case f.Part == faults.UsageLog, hidesUsageLog[f.Kind]:
		return w.struckNodes(f)
	}
	return nil
}

// hidesUsageLog contains the faults of other parts that keep an instance from its usage log.
var hidesUsageLog = map[faults.Kind]bool{faults.ConnectionsCut: true, faults.InstancePauses: true}

// outage is the time during which calls failed or had to wait. The zero outage never happened.
type outage struct {
	mu      sync.Mutex
	strikes int       // faults under way
	over    time.Time // when the last one ended; elapsed time
}

// begin begins an outage that lasts until the returned function is called.
func (o *outage) begin() (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.strikes++
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.strikes--
		o.over = time.Now()
	}
}

// wasSince reports whether calls failed or waited at some time since an instant, or so shortly before it that they had not recovered.
func (o *outage) wasSince(at time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.strikes > 0 || o.over.After(at.Add(-recoveryTime))
}

// recoveryTime is the time until calls succeed again after the last fault: the longest pause between two attempts.
const recoveryTime = 3 * time.Second

// struckNodes returns the nodes that a fault strikes.
func (w *World) struckNodes(f faults.Fault) []*node {
	if f.Instance < 0 {
		return w.nodes
	}
	return w.nodes[f.Instance : f.Instance+1]
}

// strikeNodes makes the wrappers of the nodes strike their calls for a while.
func (w *World) strikeNodes(f faults.Fault) error {
	for _, n := range w.struckNodes(f) {
		defer n.strike(f)()
	}
	time.Sleep(f.For)
	return nil
}

// worldStrikes returns the functions for the faults that strike more than calls, by kind.
func (w *World) worldStrikes() map[faults.Kind]func(faults.Fault) error {
	return map[faults.Kind]func(faults.Fault) error{
		faults.InstanceDies:     func(f faults.Fault) error { return w.killEach(f, func(*node) error { return nil }) },
		faults.InstanceNoFiles:  func(f faults.Fault) error { return w.killEach(f, (*node).removeFiles) },
		faults.InstanceOldFiles: func(f faults.Fault) error { return w.killEach(f, (*node).restoreFiles) },
		faults.InstanceStops: func(f faults.Fault) error {
			for _, n := range w.struckNodes(f) {
				n.stop()
			}
			time.Sleep(f.For)
			w.startNodes(w.struckNodes(f))
			return nil
		},
		faults.DiesBeforeAppend: w.strikeAppends,
		faults.DiesAfterAppend:  w.strikeAppends,
		faults.TypeUnknown:      w.runOlderProgram,
		faults.EventUnusable:    w.spoilStream,
		faults.ServerSilent:     w.silenceServer,
		faults.ServerRestarts:   w.restartServer,
		faults.ConnectionsCut: func(f faults.Fault) error {
			for _, n := range w.struckNodes(f) {
				if r := n.current(); r != nil {
					r.servers.cut()
				}
			}
			return nil
		},
		faults.RegionAway: w.withdrawRegion,
		faults.WallClockApart: func(f faults.Fault) error {
			for _, n := range w.struckNodes(f) {
				w.jumpWallClock(n, f.Jump)
				defer w.jumpWallClock(n, -f.Jump)
			}
			time.Sleep(f.For)
			return nil
		},
		faults.WallClockFarAhead: w.strikeFarAhead,
		faults.DatabaseClockJumped: func(f faults.Fault) error {
			w.dbClock.jump(f.Jump)
			return nil
		},
		faults.DatabaseLocked: w.lockReadModels,
		faults.ReadModelsLost: func(faults.Fault) error {
			return w.withoutInstances(func() error { return os.RemoveAll(w.readModelsFolder()) })
		},
		faults.ReadModelsOld: func(faults.Fault) error {
			return w.withoutInstances(func() error { return w.restoreFiles(w.readModelsFolder(), "readmodels") })
		},
		faults.VaultOld: w.strikeVault,
	}
}

// jumpWallClock sets a node's wall clock forward or back.
func (w *World) jumpWallClock(n *node, by time.Duration) {
	w.people.Model.ClockJumps(n.number, n.now())
	n.wall.jump(by)
	w.people.Model.ClockJumps(n.number, n.now())
}

// withdrawRegion makes nodes serve neither vintage nor road network for a while.
func (w *World) withdrawRegion(f faults.Fault) (err error) {
	var away []*regionView
	for _, n := range w.struckNodes(f) {
		if r := n.current(); r != nil {
			r.view.withdraw()
			away = append(away, r.view)
		}
	}
	time.Sleep(f.For)
	for _, v := range away {
		err = errors.Join(err, v.open())
	}
	return err
}

// silenceServer makes a server answer nothing for a while, on connections that stay open.
func (w *World) silenceServer(f faults.Fault) error {
	if s := w.servers[f.Part]; s != nil {
		s.silence.Begin()
		defer s.silence.End()
		time.Sleep(f.For)
	}
	return nil
}

// restartServer ends a server for a while. Afterwards it has forgotten which appends were made with any expectation.
func (w *World) restartServer(f faults.Fault) error {
	s := w.servers[f.Part]
	if s == nil {
		return nil
	}
	err := s.end()
	s.log.ForgetIDs()
	time.Sleep(f.For)
	s.start()
	return err
}

// strikeAppends makes nodes die at an append, and restarts those that did when the fault is over.
func (w *World) strikeAppends(f faults.Fault) error {
	err := w.strikeNodes(f)
	w.startNodes(w.struckNodes(f))
	return err
}

// runOlderProgram runs an older program on nodes for a while, and then the present one again. Each starts after the graceful end of the one
// before.
func (w *World) runOlderProgram(f faults.Fault) error {
	for _, n := range w.struckNodes(f) {
		n.stop()
	}
	mends := make([]func(), 0, instanceCount)
	for _, n := range w.struckNodes(f) {
		mends = append(mends, n.strike(f))
	}
	w.startNodes(w.struckNodes(f))
	time.Sleep(f.For)
	for _, n := range w.struckNodes(f) {
		n.stop()
	}
	for _, mend := range mends {
		mend()
	}
	w.startNodes(w.struckNodes(f))
	return nil
}

// spoilStream appends an event that no program can decode to a stream of an account, and has an operator repair that account.
func (w *World) spoilStream(f faults.Fault) error {
	account := w.people.PickOpen(f.Choice)
	if account == "" {
		return nil
	}
	if _, isSpoiled := w.spoiled.LoadOrStore(account, true); isSpoiled { // one repair would fix both
		return nil
	}
	defer w.spoiled.Delete(account)
	category := "account-"
	if f.Choice/64%2 == 0 {
		category = "locations-"
	}
	_, err := w.core.Append(context.Background(), category+account, eventstore.Any, []eventstore.ProposedEvent{
		{ID: uuid.New(), Type: newTypes[f.Choice%len(newTypes)], Data: []byte(`{"none":`), Metadata: []byte("{}")}})
	time.Sleep(f.For)
	if err == nil && category == "account-" {
		w.people.CheckStopped(context.Background(), account)
	}
	w.people.Repair(context.Background(), account)
	return err
}

// killEach kills the nodes of a fault, changes their files, and starts them again after a while.
func (w *World) killEach(f faults.Fault, change func(*node) error) (err error) {
	for _, n := range w.struckNodes(f) {
		err = errors.Join(err, n.kill(), change(n))
	}
	time.Sleep(f.For)
	w.startNodes(w.struckNodes(f))
	return err
}

// withoutInstances kills all instances, changes what they share, and starts them again.
func (w *World) withoutInstances(change func() error) (err error) {
	w.lifecycle <- struct{}{}
	defer func() { <-w.lifecycle }()
	for _, n := range w.nodes {
		err = errors.Join(err, n.kill())
	}
	w.awaitEnds()
	w.epoch.Add(1)
	err = errors.Join(err, change())
	for _, n := range w.nodes {
		n.start()
	}
	return err
}

// strikeVault replaces the vault with yesterday's, or with one from before all accounts, and puts the present one back after the fault.
// Meanwhile nobody can write anything into the older one that the log would miss: an instance that finds the wrong vault refuses to seal.
func (w *World) strikeVault(f faults.Fault) error {
	present, older, lacksKeys := filepath.Join(w.folder, "vault-present.db"), "vault.db", false
	if f.Choice%2 == 0 {
		older = firstVault
	}
	err := w.withoutInstances(func() (err error) {
		// A vault with as many keys is not older: data sealed with it would be lost when the present one is put back.
		if lacksKeys, err = hasFewerKeys(filepath.Join(w.yesterday(), older), w.vaultFile()); err != nil || !lacksKeys {
			return err
		}
		return errors.Join(os.RemoveAll(present), vacuumInto(present, w.vaultFile()), w.removeVaultJournal(), w.restoreFiles(w.vaultFile(), older))
	})
	if !lacksKeys {
		return err
	}
	time.Sleep(f.For)
	return errors.Join(err, w.withoutInstances(func() error { return errors.Join(w.removeVaultJournal(), copyFile(w.vaultFile(), present)) }))
}

// removeVaultJournal removes SQLite's files next to the vault, which belong to the replaced file.
func (w *World) removeVaultJournal() error {
	return errors.Join(os.RemoveAll(w.vaultFile()+"-wal"), os.RemoveAll(w.vaultFile()+"-shm"))
}

// hasFewerKeys reports whether a vault has fewer keys than another one.
func hasFewerKeys(older, present string) (bool, error) {
	var counts [2]int
	for i, file := range []string{older, present} {
		if _, err := os.Stat(file); err != nil {
			return false, ignoreMissing(err)
		}
		db, err := sql.Open("sqlite", "file:"+file)
		if err != nil {
			return false, err
		}
		err = errors.Join(db.QueryRow("select count(*) from data_keys").Scan(&counts[i]), db.Close())
		if err != nil {
			return false, err
		}
	}
	return counts[0] < counts[1], nil
}

// ignoreMissing returns nil if the error is that a file does not exist.
func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// lockReadModels holds the write lock of every file of the read models, as another program might.
func (w *World) lockReadModels(f faults.Fault) error {
	files, err := filepath.Glob(filepath.Join(w.readModelsFolder(), "*.db"))
	if err != nil {
		return err
	}
	ctx := context.Background()
	for _, file := range files {
		if info, err := os.Lstat(file); err != nil || info.Mode()&fs.ModeSymlink != 0 {
			continue
		}
		db, err := sql.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=busy_timeout(200)")
		if err != nil {
			return err
		}
		defer db.Close()
		if tx, err := db.BeginTx(ctx, nil); err == nil { // otherwise somebody is writing
			defer tx.Rollback()
		}
	}
	time.Sleep(f.For)
	return nil
}

// restoreLogs puts the logs back to an earlier quiet moment, either while the instances run or while none does.
func (w *World) restoreLogs(m moment, isLive bool) error {
	restore := func() error {
		w.core.Restore(m.core)
		w.usage.Restore(m.usage)
		return nil
	}
	if isLive {
		w.epoch.Add(1)
		return restore()
	}
	return w.withoutInstances(restore)
}

// moment is a quiet moment to which the world can be put back: log positions. The files are copied at the same time.
type moment struct{ core, usage eventstore.Position }

// firstVault is the copy of the vault from before there was any account.
const firstVault = "vault-first.db"

// keepFirstVault copies the vault for strikeVault.
func (w *World) keepFirstVault() error {
	return errors.Join(os.MkdirAll(w.yesterday(), 0o700), vacuumInto(filepath.Join(w.yesterday(), firstVault), w.vaultFile()))
}

// yesterday returns the folder of the copies made at the last quiet moment.
func (w *World) yesterday() string { return filepath.Join(w.folder, "yesterday") }

// keepMoment copies all files, as a backup of running instances does: each database on its own.
func (w *World) keepMoment() (moment, error) {
	models := filepath.Join(w.yesterday(), "readmodels")
	err := errors.Join(os.RemoveAll(models), os.MkdirAll(models, 0o700), os.RemoveAll(filepath.Join(w.yesterday(), "vault.db")))
	files, globErr := filepath.Glob(filepath.Join(w.readModelsFolder(), "*.db"))
	err = errors.Join(err, globErr, vacuumInto(filepath.Join(w.yesterday(), "vault.db"), w.vaultFile()))
	for _, file := range files {
		if info, statErr := os.Lstat(file); statErr == nil && info.Mode().IsRegular() {
			err = errors.Join(err, vacuumInto(filepath.Join(models, filepath.Base(file)), file))
		}
	}
	for _, n := range w.nodes {
		copied := filepath.Join(w.yesterday(), n.name())
		err = errors.Join(err, os.RemoveAll(copied), copyFolder(copied, n.currentFolder()))
	}
	return moment{w.core.LastPosition(), w.usage.LastPosition()}, err
}

// vacuumInto copies a database while it is in use.
func vacuumInto(to, from string) error {
	db, err := sql.Open("sqlite", "file:"+from+"?_pragma=busy_timeout(5000)")
	if err != nil {
		return err
	}
	_, err = db.Exec("vacuum into ?", to)
	return errors.Join(err, db.Close())
}

// restoreFiles replaces a file or a folder with yesterday's copy. Without a copy nothing changes.
func (w *World) restoreFiles(to, name string) error {
	from := filepath.Join(w.yesterday(), name)
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if info.IsDir() {
		return copyFolder(to, from)
	}
	return copyFile(to, from)
}

// removeFiles removes a dead node's own files.
func (n *node) removeFiles() error { return os.RemoveAll(n.currentFolder()) }
func (n *node) restoreFiles() error {
	return n.world.restoreFiles(n.currentFolder(), n.name())
}

// name returns the name of the node's instance.
func (n *node) name() string { return "instance-" + string(rune('0'+n.number)) }

// copyFolder copies a folder with its files and links, if it exists.
func copyFolder(to, from string) error {
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		}
		return copyFile(target, path)
	})
}

func copyFile(to, from string) error {
	content, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600)
}
