package stock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/neap-go/neap/core/script"
	"github.com/neap-go/neap/core/stock"
	"github.com/neap-go/neap/internal/storetest"
)

// connect stands for connecting to your Redis.
func connect() script.Client { return storetest.Embedded() }

func ExampleNew() {
	ctx := context.Background()
	sale, err := stock.New(connect(), "sale", nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := sale.Open(ctx, "phone", 2, time.Now().Add(24*time.Hour)); err != nil {
		log.Fatal(err)
	}
	// A process that dies behind this line has sold nothing: ann asks again below.
	if _, err := sale.Reserve(ctx, "phone", "ann", "order-of-ann", nil); err != nil {
		log.Fatal(err)
	}
	for _, buyer := range []string{"ann", "bob", "ann", "cid"} {
		r, err := sale.Reserve(ctx, "phone", buyer, "order-of-"+buyer, nil)
		switch {
		case errors.Is(err, stock.ErrSoldOut):
			fmt.Println(buyer, "is too late")
			continue
		case err != nil:
			log.Fatal(err)
		case r.Confirmed():
			fmt.Println(buyer, "asks again, and has one")
			continue
		}
		if err := r.Confirm(ctx); err != nil {
			log.Fatal(err)
		}
		fmt.Println(buyer, "has one")
	}
	level, err := sale.Left(ctx, "phone")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(level.Left, "left,", level.Sold, "sold")
	// Output:
	// ann has one
	// bob has one
	// ann asks again, and has one
	// cid is too late
	// 0 left, 2 sold
}

func ExampleStock_Resume() {
	ctx := context.Background()
	sale, err := stock.New(connect(), "sale", &stock.Options{Lease: 16 * time.Minute})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := sale.Open(ctx, "phone", 100, time.Now().Add(24*time.Hour)); err != nil {
		log.Fatal(err)
	}
	// The order is made, and has to be paid within a quarter of an hour. The lease is longer,
	// since a callback takes a while.
	if _, err := sale.Reserve(ctx, "phone", "ann", "order-17", &stock.ReserveOptions{Keep: true}); err != nil {
		log.Fatal(err)
	}
	// In the callback, in another process, if it says that the order was paid:
	paid, err := sale.Resume("phone", "ann", "order-17", nil)
	if err != nil {
		log.Fatal(err)
	}
	switch err := paid.Confirm(ctx); {
	case errors.Is(err, stock.ErrLapsed):
		fmt.Println("too late: give the money back")
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println("sold")
	}
	// Output: sold
}

func ExampleStock_Reserve() {
	ctx := context.Background()
	sale, err := stock.New(connect(), "sale", nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := sale.Open(ctx, "phone", 100, time.Now().Add(24*time.Hour)); err != nil {
		log.Fatal(err)
	}
	r, err := sale.Reserve(ctx, "phone", "ann", "order-17", &stock.ReserveOptions{Quantity: 3})
	switch {
	case errors.Is(err, stock.ErrSoldOut):
		log.Fatal("fewer than 3 are left")
	case errors.Is(err, stock.ErrYours):
		log.Fatal("ann has the phone in another order")
	case err != nil:
		log.Fatal(err) // Redis did not answer: nothing is promised
	}
	if err := r.Cancel(ctx); err != nil { // she did not pay
		log.Fatal(err)
	}
	level, err := sale.Left(ctx, "phone")
	fmt.Println(level.Left, err)
	// Output: 100 <nil>
}

// Code that reserves without a gate hands its reservation on.
func ExampleNewContext() {
	ctx := context.Background()
	pay := func(ctx context.Context) error {
		own, ok := stock.FromContext(ctx)
		if !ok {
			return errors.New("pay needs a reservation")
		}
		fmt.Println(own.Buyer(), "pays for", own.Quantity(), own.Item())
		return own.Confirm(ctx)
	}
	sale, err := stock.New(connect(), "sale", nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := sale.Open(ctx, "phone", 1, time.Now().Add(24*time.Hour)); err != nil {
		log.Fatal(err)
	}
	r, err := sale.Reserve(ctx, "phone", "ann", "order-17", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pay(stock.NewContext(ctx, r)), r.Confirmed())
	// Output:
	// ann pays for 1 phone
	// <nil> true
}

func ExampleStock_Buyers() {
	ctx := context.Background()
	sale, err := stock.New(connect(), "sale", nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := sale.Open(ctx, "phone", 5, time.Now().Add(24*time.Hour)); err != nil {
		log.Fatal(err)
	}
	if _, err := sale.Reserve(ctx, "phone", "ann", "order-17", &stock.ReserveOptions{Quantity: 2}); err != nil {
		log.Fatal(err)
	}
	for b, err := range sale.Buyers(ctx, "phone") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.Buyer, b.Quantity, b.Sold)
	}
	// Output: ann 2 false
}

// A handler behind gate.Reserve finds its reservation in the context of the request.
func ExampleFromContext() {
	number := func(ctx context.Context) string {
		own, ok := stock.FromContext(ctx)
		if !ok {
			return "nothing is reserved"
		}
		return own.ID() + " of " + own.Buyer()
	}
	ctx := context.Background()
	fmt.Println(number(ctx))

	sale, err := stock.New(connect(), "sale", nil)
	if err != nil {
		log.Fatal(err)
	}
	r, err := sale.Resume("phone", "ann", "order-17", nil) // asks Redis nothing
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(number(stock.NewContext(ctx, r)))
	// Output:
	// nothing is reserved
	// order-17 of ann
}
