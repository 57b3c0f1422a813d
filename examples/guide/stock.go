package guide

import (
	"context"
	_ "embed"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/neap-go/neap/core/stock"
)

//go:embed stock_usual.lua
var usualStockLua string

var usualStock = redis.NewScript(usualStockLua)

// SellByGet looks how many units are left, and takes one.
func SellByGet(ctx context.Context, rdb redis.Cmdable, key string) (bool, error) {
	left, err := rdb.Get(ctx, key).Int()
	if err != nil || left == 0 {
		return false, err
	}
	return true, rdb.Decr(ctx, key).Err()
}

// SellByScript does the same in one script.
func SellByScript(ctx context.Context, rdb redis.Scripter, key string, units int) (bool, error) {
	return usualStock.Run(ctx, rdb, []string{key}, units).Bool()
}

// Sell sells a unit at once.
func Sell(ctx context.Context, phones *stock.Stock, buyer, order string) (bool, error) {
	_, err := phones.Reserve(ctx, "phone", buyer, order, &stock.ReserveOptions{Confirm: true})
	switch {
	case errors.Is(err, stock.ErrSoldOut), errors.Is(err, stock.ErrYours), errors.Is(err, stock.ErrUnknown):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}
