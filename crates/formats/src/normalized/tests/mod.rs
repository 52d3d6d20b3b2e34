mod round_trip;
