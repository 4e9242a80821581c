package vintage

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"unsafe"
)

// Guard runs f, which reads the vintage. Where a page of the file is not there any more, because it was cut short or the
// disk fails, f ends and the vintage is damaged for good; the process goes on. What f came to in a vintage that is
// damaged by then is not to be relied on: Guard returns the damage. It holds for one goroutine; one that f starts needs
// its own.
func (v *Vintage) Guard(f func() error) (err error) {
	if err := v.Damage(); err != nil {
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			if !v.holds(cause) {
				panic(cause)
			}
			err = v.Condemn(fmt.Errorf("%w: it cannot be read any more: it was cut short, or the disk fails", ErrDamaged))
		}
	}()
	err = f()
	if damage := v.Damage(); damage != nil {
		return damage
	}
	return err
}

// holds says whether a panic is that of a read of the mapping.
func (v *Vintage) holds(cause any) bool {
	err, ok := cause.(error)
	if !ok {
		return false
	}
	fault, ok := errors.AsType[interface {
		runtime.Error
		Addr() uintptr
	}](err)
	if !ok || len(v.data) == 0 {
		return false
	}
	first := uintptr(unsafe.Pointer(unsafe.SliceData(v.data)))
	return fault.Addr() >= first && fault.Addr()-first < uintptr(len(v.data))
}

// Condemn says that the vintage must not be asked any more, and why. It returns what was said first.
func (v *Vintage) Condemn(why error) error {
	v.damaged.CompareAndSwap(nil, &why)
	return v.Damage()
}

// Damage is why the vintage must not be asked any more; nil while it can be.
func (v *Vintage) Damage() error {
	if why := v.damaged.Load(); why != nil {
		return *why
	}
	return nil
}
