package ledger

// Draft is a tick in the making: what would count if it were next in the stream.
type Draft struct {
	book *Book
	used int64
	by   []share
}

type share struct {
	account string
	used    int64
}

// Draft begins a tick.
func (b *Book) Draft() *Draft { return &Draft{book: b} }

// Take adds one request with a key of an account, unless the verdict says that it would not count.
func (d *Draft) Take(account, key string) Verdict {
	if _, v := d.book.Room(account, key); v != Counts {
		return v
	}
	b, s := d.book, d.share(account)
	contract, a := b.accounts[b.Contract], b.accounts[account]
	if b.used+d.used >= contract.cap || account != b.Contract && a.used+s.used >= a.cap {
		return Spent
	}
	d.used++
	s.used++
	return Counts
}

func (d *Draft) share(account string) *share {
	for i := range d.by {
		if d.by[i].account == account {
			return &d.by[i]
		}
	}
	d.by = append(d.by, share{account: account})
	return &d.by[len(d.by)-1]
}
